-- One that was claimed from a warm pool is started all the time: what was asked for with it counts once its runner has this
-- generation, and no call gets inside before.
alter table sandboxes add column least_generation integer;
