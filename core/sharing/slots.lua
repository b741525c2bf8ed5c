-- Tells a worker how many slots of one server it may hold, of the number that all workers may hold together.
--
-- KEYS[1]: the server, a hash with a field for each worker: the slots that it holds, those that it needs for the
-- requests that run and wait there, the store's time in milliseconds, and the number of its message.
-- ARGV: the worker, the number of its message, 1 if it has held slots before, the slots that it holds, those that it
-- wants, those that it needs, the slots in all, the least number of workers, milliseconds until a silent worker is
-- forgotten, milliseconds that workers have to report what they hold to a store that knows nothing.
-- Returns the slots that it may hold now, at least those that it holds; the number of workers; how many of them
-- precede this one by name; 1 if another one needs more than it holds; 1 if such a one holds less than its equal share,
-- or nothing where there are fewer slots than workers.
-- Where all hold more than there are, both are 1.

local me, number, known = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '1'
local held, want, need = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local most, least = tonumber(ARGV[7]), tonumber(ARGV[8])
local silent, settling = tonumber(ARGV[9]), tonumber(ARGV[10])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local fields = redis.call('HGETALL', KEYS[1])
local since, newest, others, workers, before, short, shortest = nil, nil, 0, 1, 0, 0, nil
for i = 1, #fields, 2 do
  local name, text = fields[i], fields[i + 1]
  if name == '' then
    since = math.min(tonumber(text), now)
  else
    local other_held, other_need, at, last = string.match(text, '^(%d+) (%d+) (%d+) (%d+)$')
    other_held, other_need, at, last =
      tonumber(other_held), tonumber(other_need), tonumber(at), tonumber(last)
    newest = math.max(newest or at, at)
    if name == me then
      if number < last then
        -- A message of a lost connection that arrives after a later one.
        return {held, 1, 0, 0, 0}
      end
    elseif now - at > silent then
      redis.call('HDEL', KEYS[1], name)
    else
      workers = workers + 1
      others = others + other_held
      if name < me then
        before = before + 1
      end
      if other_need > other_held then
        short = 1
        shortest = math.min(shortest or other_held, other_held)
      end
    end
  end
end
if not since or (newest and now - newest > silent / 2) then
  -- It lost its memory, or none told it anything for long, because it was away or its clock jumped: who seems to
  -- have ended may be there.
  since = now
  redis.call('HSET', KEYS[1], '', string.format('%.0f', now))
end

local granted = held
if want > held then
  local free = most - others
  if now - since < settling then
    -- Others may hold slots that this store has not heard of. A worker that had none gets its equal share.
    free = known and 0 or math.min(free, math.max(1, math.floor(most / math.max(workers, least))))
  end
  granted = math.max(held, math.min(want, free))
end
redis.call('HSET', KEYS[1], me, string.format('%.0f %.0f %.0f %.0f', granted, need, now, number))
redis.call('PEXPIRE', KEYS[1], 4 * silent)
local below = shortest and shortest < math.max(1, math.floor(most / workers)) and 1 or 0
if others + granted > most then
  -- There are fewer slots than before, or a worker was silent for too long and still holds some.
  short, below = 1, 1
end
return {granted, workers, before, short, below}
