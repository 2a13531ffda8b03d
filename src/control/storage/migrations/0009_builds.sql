-- Sandboxes that are made of a definition, and wait for its image.

-- What an image says of the sandboxes that are made from it, once it was brought.
alter table images add column config jsonb;

alter table sandboxes
  -- The definition, and the user that the caller named: dockerfile, user.
  add column build jsonb;
create index sandboxes_waiting_for_image on sandboxes (image, created_at) where state = 'pending_build';
