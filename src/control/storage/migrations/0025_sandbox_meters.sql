-- Samples of what each sandbox uses, at most one in five seconds. Seven digits are enough for charts. No foreign key,
-- because it would lock the sandbox's row at each sample.
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

-- For deleting old samples.
create index sandbox_meters_at on sandbox_meters (at);

create function forget_sandbox_meters() returns trigger language plpgsql as $$
begin
  delete from sandbox_meters using gone where sandbox_id = gone.id::uuid;
  return null;
end $$;

create trigger sandbox_meters_gone after delete on sandboxes
  referencing old table as gone for each statement execute function forget_sandbox_meters();
