-- Runners that failed to build or pull the image since it was last requested. The image has failed when no other runner
-- is left.
alter table images add column failed_on text[] not null default '{}';
