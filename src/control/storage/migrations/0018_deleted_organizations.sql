-- Organizations that were deleted, until nothing of them is left on any runner, and a while longer: whoever was in the middle
-- of making something there may still end it. Their own rows are gone at once, and with those every key, member and setting.
create table deleted_organizations (
  id text primary key,
  deleted_by text not null,
  deleted_at timestamptz(3) not null,
  looked_at timestamptz(3)
);
create index sandbox_events_of_organization on sandbox_events (organization_id);

-- A region of its own outlives an organization for as long as sandboxes are there.
alter table regions drop constraint regions_organization_id_fkey;
