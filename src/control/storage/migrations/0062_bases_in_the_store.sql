-- Bases: files of base images in the store, which are rows of images whose source has the kind `base`.
create index images_bases on images (updated_at) where source ->> 'kind' = 'base';
-- The base over which an archived or saved disk lies, and the base of a snapshot in the store. Null: every host has it.
alter table sandboxes add column archive_base text;
create index sandboxes_archive_base on sandboxes (archive_base) where archive_base is not null;
alter table images add column stored_base text;
create index images_stored_base on images (stored_base) where stored_base is not null;
