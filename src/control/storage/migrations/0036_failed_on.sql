-- The runners that could not bring an image since somebody last asked for it: it has failed when no other is left to.
alter table images add column failed_on text[] not null default '{}';
