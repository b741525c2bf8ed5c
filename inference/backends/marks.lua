-- Adds a batch of marks to the stream KEYS[1] and returns the batches after the last one that was read.
-- ARGV: the id of that one, the worker's name, the batch or '', how many batches are kept and read at most, and
-- for how many seconds.
if ARGV[3] ~= '' then
  redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[4], '*', ARGV[2], ARGV[3])
  redis.call('EXPIRE', KEYS[1], ARGV[6])
end
return redis.call('XREAD', 'COUNT', ARGV[5], 'STREAMS', KEYS[1], ARGV[1])
