-- Deleted organizations. A row stays until nothing of the organization is left on runners, and a few minutes longer, so
-- that transactions that were running can end. All other rows of the organization, such as keys, members and settings,
-- are deleted immediately.
create table deleted_organizations (
  id text primary key,
  deleted_by text not null,
  deleted_at timestamptz(3) not null,
  looked_at timestamptz(3)
);
create index sandbox_events_of_organization on sandbox_events (organization_id);

-- An organization's own region outlives the organization while the region still has sandboxes.
alter table regions drop constraint regions_organization_id_fkey;
