-- The images that runners keep for snapshots: the source of each, and the runners that should have it. The built-in
-- image has no row, because every runner makes it.
create table images (
  -- A name is never used twice, so an image with this name never changes.
  name text primary key,
  -- The source: an ImageSource of wire/runner-link.ts.
  source jsonb not null,
  region_id text not null references regions,
  -- The only runner that can have the image, if it is a copy of a disk. Null: every runner of the region.
  runner_id text references runners (id),
  -- The base image, if this image is only the disk of a sandbox made from that base.
  base text,
  -- Size of the unpacked image.
  max_gib integer not null,
  -- Whether a snapshot still needs the image. If not, the image is removed after the last sandbox made from it.
  wanted boolean not null default true,
  digest text,
  -- Step and percent, while a runner builds or pulls the image.
  progress jsonb,
  created_at timestamptz(3) not null,
  updated_at timestamptz(3) not null
);

alter table snapshots add column source_sandbox_id text;
alter table snapshots add column dockerfile text;
create index snapshots_of_image on snapshots (image);
create index sandboxes_of_image on sandboxes (image) where state <> 'destroyed';
