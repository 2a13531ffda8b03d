-- What each sandbox used at some moments, at most one each five seconds. Numbers are for charts, so seven digits of them are
-- enough; no foreign key, which would lock the sandbox's row at each sample.
create table sandbox_meters (
  sandbox_id uuid not null,
  at timestamptz(3) not null,
  cpu_count real not null,
  cpu_used_pct real not null,
  mem_total real not null,
  mem_used real not null,
  mem_cache real not null,
  disk_total real not null,
  disk_used real,
  primary key (sandbox_id, at)
);

-- For what is too old.
create index sandbox_meters_at on sandbox_meters (at);

create function forget_sandbox_meters() returns trigger language plpgsql as $$
begin
  delete from sandbox_meters using gone where sandbox_id = gone.id::uuid;
  return null;
end $$;

create trigger sandbox_meters_gone after delete on sandboxes
  referencing old table as gone for each statement execute function forget_sandbox_meters();
