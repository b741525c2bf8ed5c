-- Takes from, or corrects, several token buckets in one atomic step.
--
-- KEYS: the buckets. ARGV[1]: "reserve" (all charges or none) or "settle" (unconditional).
-- Then for each bucket its limit a minute and the amount to add, in requests or tokens.
-- Returns {1 or 0, used parts of each bucket before the step}.
--
-- A bucket is the text "used at limit": parts in use, the store's time in milliseconds, the limit
-- they were counted against. It expires at the moment when it would be full again. All figures
-- are whole numbers below 2^53, where Lua's doubles are exact.

local UNITS = 60000
local reserve = ARGV[1] == 'reserve'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function keep(key, used, limit)
  if used <= 0 then
    redis.call('DEL', key)
    return
  end
  local milliseconds = math.ceil(used / math.max(limit, 1))
  redis.call('SET', key, string.format('%.0f %.0f %.0f', used, now, limit),
    'PX', string.format('%.0f', milliseconds))
end

local function drained(key, limit)
  local bucket = redis.call('GET', key)
  if not bucket then
    return 0
  end
  local used, at, counted = string.match(bucket, '^(%d+) (%d+) (%d+)$')
  used, at, counted = tonumber(used), tonumber(at), tonumber(counted)
  if counted ~= limit then
    used = math.floor(used * limit / math.max(counted, 1))
  end
  if at > now then
    -- The store's clock went back (a failover): refill from now on, not from that future moment.
    keep(key, used, limit)
    return used
  end
  return math.max(0, used - (now - at) * limit)
end

local answer = {1}
for i, key in ipairs(KEYS) do
  local limit, amount = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  local used = drained(key, limit)
  answer[i + 1] = used
  if reserve and used + amount * UNITS > limit * UNITS then
    answer[1] = 0
  end
end
if answer[1] == 1 then
  for i, key in ipairs(KEYS) do
    local limit, amount = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
    keep(key, answer[i + 1] + amount * UNITS, limit)
  end
end
return answer
