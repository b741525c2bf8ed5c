-- Adds a batch of marks to the stream KEYS[1] and returns the batches after the last one that was read.
-- ARGV: the id of that one ('': those of the last seconds, by the clock that made the ids), the worker's name, the
-- batch or '', how many batches are kept and read at most, and for how many seconds.
local read = ARGV[1]
if read == '' then
  read = string.format('%.0f-0', (redis.call('TIME')[1] - ARGV[6]) * 1000)
end
if ARGV[3] ~= '' then
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[4], '*', ARGV[2], ARGV[3])
  redis.call('EXPIRE', KEYS[1], ARGV[6])
end
return redis.call('XREAD', 'COUNT', ARGV[5], 'STREAMS', KEYS[1], read)
