-- Names of variables of the image or the server that the sandbox's processes do not get.
alter table sandboxes add column unset_env text[] not null default '{}';

create or replace function shed_when_gone() returns trigger language plpgsql as $$
begin
  update sandboxes set env = '{}', unset_env = '{}', labels = '{}', entrypoint = null, build = null
  where id = new.id
    and (env <> '{}' or unset_env <> '{}' or labels <> '{}' or entrypoint is not null or build is not null);
  return null;
end $$;
