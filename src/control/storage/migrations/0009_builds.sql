-- Sandboxes that are made from a definition, and wait until its image is built.

-- The configuration of an image, known after a runner has built or pulled it.
alter table images add column config jsonb;

alter table sandboxes
  -- The definition, and the user that the caller named: dockerfile, user.
  add column build jsonb;
create index sandboxes_waiting_for_image on sandboxes (image, created_at) where state = 'pending_build';
