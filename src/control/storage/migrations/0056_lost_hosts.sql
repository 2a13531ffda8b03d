-- When a silent runner was given up. Its next message clears the column.
alter table runners add column lost_at timestamptz(3);

-- Since when most runners of a region have been heard without a break. The silence of a runner counts only in this time.
create table region_hearing (
  region_id text primary key references regions (id) on delete cascade,
  since timestamptz(3) not null,
  until timestamptz(3) not null
);

-- What a lost runner may still have of a sandbox that can be started elsewhere. The runner removes it when it is back.
create table leftovers (
  sandbox_id text not null references sandboxes (id) on delete cascade,
  runner_id text not null,
  generation integer not null,
  primary key (sandbox_id, runner_id)
);
create index leftovers_of_runner on leftovers (runner_id);
