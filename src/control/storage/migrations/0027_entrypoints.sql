-- What runs each time a sandbox starts, as its snapshot or image said when it was made. Those that exist run as they were.
alter table sandboxes add column entrypoint text[];
