-- Sandboxes whose image is being made are told from those whose image nobody has begun with.
drop index sandboxes_waiting_for_image;
create index sandboxes_waiting_for_image on sandboxes (image, created_at)
  where state in ('pending_build', 'building_snapshot');
