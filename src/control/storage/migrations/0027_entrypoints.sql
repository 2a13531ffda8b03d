-- Command that runs at each start of the sandbox, copied from its snapshot or image. Sandboxes that exist already have
-- none.
alter table sandboxes add column entrypoint text[];
