-- Distinguishes sandboxes whose image is being built from those whose build has not begun.
drop index sandboxes_waiting_for_image;
create index sandboxes_waiting_for_image on sandboxes (image, created_at)
  where state in ('pending_build', 'building_snapshot');
