-- What grows with everything that is done has a bound by number too, and loses the oldest of whoever has the most.
drop index sandbox_events_of_organization;
create index sandbox_events_of_organization on sandbox_events (organization_id, at);

-- The row of a sandbox that is gone stays for a day, so that it can be said what became of it. That takes nothing of what its
-- creator wrote, which may be 400 KiB. Behind the statement, whose caller tells it once more as it was; one that was evicted can
-- still be listed so.
create function shed_when_gone() returns trigger language plpgsql as $$
begin
  update sandboxes set env = '{}', labels = '{}', entrypoint = null, build = null where id = new.id;
  return null;
end $$;
create trigger shed_when_gone after update of gone_at on sandboxes
  for each row when (old.gone_at is null and new.gone_at is not null and new.spot_evicted_at is null
    and (new.env <> '{}' or new.labels <> '{}' or new.entrypoint is not null or new.build is not null))
  execute function shed_when_gone();
update sandboxes set env = '{}', labels = '{}', entrypoint = null, build = null
  where gone_at is not null and spot_evicted_at is null;

-- For whom it was built, of those that are built for sandboxes.
alter table images add column built_for text;
update images set built_for = (
  select organization_id from sandboxes where sandboxes.image = images.name and build is not null limit 1)
  where starts_with(name, 'build-');
create index images_built_for on images (built_for) where built_for is not null;
