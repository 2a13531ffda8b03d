-- The trigger checks only whether the sandbox is gone; the function names the columns to empty. A further column then
-- changes only the function. The columns are in src/control/sandboxes/record/columns.ts.
create or replace function shed_when_gone() returns trigger language plpgsql as $$
begin
  update sandboxes set env = '{}', labels = '{}', entrypoint = null, build = null
  where id = new.id and (env <> '{}' or labels <> '{}' or entrypoint is not null or build is not null);
  return null;
end $$;
drop trigger shed_when_gone on sandboxes;
create trigger shed_when_gone after update of gone_at on sandboxes
  for each row when (old.gone_at is null and new.gone_at is not null and new.spot_evicted_at is null)
  execute function shed_when_gone();
