-- What runners keep for snapshots: what each image is made from, and where it should be. The built-in one has no row: it is
-- made by every runner for itself.
create table images (
  -- Never given twice, so what has this name never changes.
  name text primary key,
  -- An ImageSource of the runner link.
  source jsonb not null,
  region_id text not null references regions,
  -- The one runner that can have it, where it is made of a disk; null: every runner of the region.
  runner_id text references runners (id),
  -- The image below, for one that is only the disk of a sandbox made from that.
  base text,
  -- Unpacked.
  max_gib integer not null,
  -- Whether a snapshot still needs it. Where none does, it goes when the last sandbox made from it has gone.
  wanted boolean not null default true,
  digest text,
  -- Step and percent, while a runner brings it.
  progress jsonb,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);

alter table snapshots add column source_sandbox_id text;
alter table snapshots add column dockerfile text;
create index snapshots_of_image on snapshots (image);
create index sandboxes_of_image on sandboxes (image) where state <> 'destroyed';
