-- Whether stopped sandboxes of the region are saved in the archive store.
alter table regions add column saves_stopped boolean not null default false;

-- `wanted`: the runner is to save the stopped disk as the archive `archive_id`. `saved`: that archive is as the disk is.
-- `saved_at`: when the newest save was complete. It stays when the sandbox starts.
alter table sandboxes
  add column save_state text check (save_state in ('wanted', 'saved')),
  add column saved_at timestamptz(3);
create index sandboxes_unsaved on sandboxes (region_id) where state = 'stopped' and save_state is null;
create index sandboxes_saves on sandboxes (save_state) where save_state is not null;

-- A disk may change from the moment at which its sandbox is to run. The database holds this rule, so that it is true for
-- a control of an older version too, which runs beside this one during an upgrade.
create function forget_save() returns trigger language plpgsql as $$
begin
  new.save_state := null;
  return new;
end $$;
create trigger forget_save before update of desired_state on sandboxes
  for each row when (new.save_state is not null and new.desired_state in ('started', 'paused'))
  execute function forget_save();
