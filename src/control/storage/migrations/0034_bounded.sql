-- History tables have a limit of rows. Above it, the organization with the most rows loses its oldest rows.
drop index sandbox_events_of_organization;
create index sandbox_events_of_organization on sandbox_events (organization_id, at);

-- The row of a destroyed sandbox stays for a day, so that callers can learn what happened to it. Texts of its creator,
-- which may be 400 KiB, are removed. The trigger runs after the statement, whose caller still shows the sandbox as it
-- was. An evicted sandbox can still be listed.
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

-- The organization, if the image was built for sandboxes.
alter table images add column built_for text;
update images set built_for = (
  select organization_id from sandboxes where sandboxes.image = images.name and build is not null limit 1)
  where starts_with(name, 'build-');
create index images_built_for on images (built_for) where built_for is not null;
