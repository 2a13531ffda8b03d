-- Calls into the sandbox wait until its runner has applied this generation. A claim sets it: a claimed sandbox is
-- `started` before it has the requested settings.
alter table sandboxes add column least_generation integer;
