-- Takes from, or corrects, several buckets and windows in one atomic step.
--
-- KEYS: the buckets. ARGV[1]: "reserve" (all charges or none) or "settle" (unconditional).
-- Then five numbers for each: its limit and the amount to add, in requests or tokens; the parts
-- that one of them is counted in; for a window its remaining life in milliseconds and the
-- known used amount (-1: not known), for a bucket 0 and -1.
-- Returns {1 or 0, used parts of each before the step}, or {-1} when a window to be taken from is
-- neither here nor known to the caller.
--
-- A bucket is the text "used at limit": parts in use, the store's time in milliseconds, the limit
-- they were counted against. It expires at the moment when it would be full again. A window is the
-- number of parts in use. All numbers are whole and below 2^53, where Lua's doubles are exact.

local reserve = ARGV[1] == 'reserve'
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local charges = {}
for i, key in ipairs(KEYS) do
  local at = 5 * i - 3
  charges[i] = {
    key = key, limit = tonumber(ARGV[at]), amount = tonumber(ARGV[at + 1]),
    unit = tonumber(ARGV[at + 2]), life = tonumber(ARGV[at + 3]), before = tonumber(ARGV[at + 4])
  }
end

local function keep_bucket(key, used, limit)
  if used <= 0 then
    redis.call('DEL', key)
    return
  end
  local milliseconds = math.ceil(used / math.max(limit, 1))
  redis.call('SET', key, string.format('%.0f %.0f %.0f', used, now, limit),
    'PX', string.format('%.0f', milliseconds))
end

local function keep(charge, used)
  if charge.life > 0 then
    redis.call('SET', charge.key, string.format('%.0f', math.max(used, 0)),
      'PX', string.format('%.0f', charge.life))
  else
    keep_bucket(charge.key, used, charge.limit)
  end
end

local function drained(charge)
  local bucket = redis.call('GET', charge.key)
  if not bucket then
    return 0
  end
  local used, at, counted = string.match(bucket, '^(%d+) (%d+) (%d+)$')
  used, at, counted = tonumber(used), tonumber(at), tonumber(counted)
  if counted ~= charge.limit then
    used = math.floor(used * charge.limit / math.max(counted, 1))
  end
  if at > now then
    -- The store's clock went back (a failover): refill from now on, not from that future moment.
    keep_bucket(charge.key, used, charge.limit)
    return used
  end
  return math.max(0, used - (now - at) * charge.limit)
end

local function used_of(charge)
  if charge.life == 0 then
    return drained(charge)
  end
  local counted = tonumber(redis.call('GET', charge.key) or '-1')
  -- Kept even if the step is refused: the next caller need not ask for it again.
  if charge.before > counted then
    keep(charge, charge.before)
    return charge.before
  end
  return counted
end

local answer = {1}
for i, charge in ipairs(charges) do
  local used = used_of(charge)
  answer[i + 1] = used
  if reserve and used < 0 then
    return {-1}
  end
  if reserve and used + charge.amount * charge.unit > charge.limit * charge.unit then
    answer[1] = 0
  end
end
if answer[1] == 1 then
  for i, charge in ipairs(charges) do
    -- A window that was lost meanwhile gets no refund: it never had the charge.
    if answer[i + 1] >= 0 then
      keep(charge, answer[i + 1] + charge.amount * charge.unit)
    end
  end
end
return answer
