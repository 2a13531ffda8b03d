-- Users, organizations, roles and keys. Ids are text: a malformed id in a path is then simply unknown.

create table users (
  id text primary key default gen_random_uuid()::text,
  name text not null,
  email text not null,
  email_verified boolean not null default false,
  -- Who verified the address: admin, sso, or an issuer. An address that only sso verified cannot claim its domain.
  email_verified_by text,
  system_role text not null default 'user' check (system_role in ('admin', 'user')),
  public_keys jsonb not null default '[]',
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
create unique index users_email on users (lower(email));

create table organizations (
  id text primary key default gen_random_uuid()::text,
  name text not null,
  created_by text not null,
  personal boolean not null default false,
  default_region_id text,
  suspended boolean not null default false,
  suspended_at timestamptz(3),
  suspended_until timestamptz(3),
  suspension_reason text,
  suspension_cleanup_grace_period_hours integer not null default 24,
  -- The operator owns the machine, so the default limits only prevent mistakes (docs/reference/choices.md).
  max_cpu_per_sandbox integer not null default 64,
  max_memory_per_sandbox integer not null default 256,
  max_disk_per_sandbox integer not null default 1024,
  snapshot_quota integer not null default 1000,
  max_snapshot_size integer not null default 100,
  volume_quota integer not null default 1000,
  secret_quota integer not null default 1000,
  max_secrets_per_sandbox integer not null default 100,
  snapshot_deactivation_timeout_minutes integer not null default 20160,
  max_concurrent_snapshot_processing integer not null default 0,
  sandbox_limited_network_egress boolean not null default false,
  preview_warning_enabled boolean not null default false,
  sso_enabled boolean not null default false,
  authenticated_rate_limit integer,
  authenticated_rate_limit_ttl_seconds integer,
  sandbox_create_rate_limit integer,
  sandbox_create_rate_limit_ttl_seconds integer,
  sandbox_lifecycle_rate_limit integer,
  sandbox_lifecycle_rate_limit_ttl_seconds integer,
  experimental_config jsonb,
  otel_config jsonb,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);

create table regions (
  id text primary key,
  name text not null,
  organization_id text references organizations on delete cascade,
  region_type text not null check (region_type in ('shared', 'dedicated', 'custom')),
  enforces_quota boolean not null default false,
  proxy_url text,
  ssh_gateway_url text,
  snapshot_manager_url text,
  otel_endpoint text,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  check ((region_type = 'custom') = (organization_id is not null))
);
create unique index regions_name on regions (coalesce(organization_id, ''), name);

alter table organizations add foreign key (default_region_id) references regions on delete set null;

-- `organization_id` null: a global role, which every organization has.
create table roles (
  id text primary key default gen_random_uuid()::text,
  organization_id text references organizations on delete cascade,
  name text not null,
  description text not null,
  permissions text[] not null,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now()
);
create unique index roles_name on roles (coalesce(organization_id, ''), name);

create table members (
  organization_id text not null references organizations on delete cascade,
  user_id text not null references users on delete cascade,
  role text not null check (role in ('owner', 'member')),
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  primary key (organization_id, user_id)
);
create index members_user on members (user_id);

create table member_roles (
  organization_id text not null,
  user_id text not null,
  role_id text not null references roles on delete cascade,
  primary key (organization_id, user_id, role_id),
  foreign key (organization_id, user_id) references members on delete cascade
);

-- A key is deleted with its membership. Only its hash is stored: SHA-256 is enough for 32 random bytes.
create table api_keys (
  organization_id text not null,
  user_id text not null,
  name text not null,
  hash text not null unique check (hash ~ '^[0-9a-f]{64}$'),
  masked_value text not null,
  permissions text[] not null,
  created_at timestamptz(3) not null default now(),
  last_used_at timestamptz(3),
  expires_at timestamptz(3),
  primary key (organization_id, user_id, name),
  foreign key (organization_id, user_id) references members on delete cascade
);

-- `organization_id` null and `general`: a snapshot that every organization can use.
create table snapshots (
  id text primary key default gen_random_uuid()::text,
  organization_id text references organizations on delete cascade,
  general boolean not null default false,
  name text not null,
  state text not null check (state in ('building', 'pending', 'pulling', 'snapshotting', 'active', 'inactive', 'error',
                                       'build_failed', 'removing')),
  error_reason text,
  -- The name of the image on runners, and the registry name that it was made from, if it has one.
  image text not null,
  image_name text,
  sandbox_class text not null default 'container',
  -- Default OS user of sandboxes made from the snapshot.
  os_user text not null default 'daytona',
  entrypoint text[],
  cpu integer not null check (cpu > 0),
  gpu integer not null default 0,
  memory_gib integer not null check (memory_gib > 0),
  disk_gib integer not null check (disk_gib > 0),
  -- GiB; null until the size is known.
  size double precision,
  created_at timestamptz(3) not null default now(),
  updated_at timestamptz(3) not null default now(),
  last_used_at timestamptz(3),
  check (general or organization_id is not null)
);
create unique index snapshots_name on snapshots (coalesce(organization_id, ''), name);

-- The global roles. Clients know their ids and permissions.
insert into roles (id, name, description, permissions) values
  ('00000000-0000-0000-0000-000000000001', 'Developer', 'Creates and uses sandboxes.',
   '{write:sandboxes}'),
  ('00000000-0000-0000-0000-000000000002', 'Sandboxes Admin', 'Creates, uses and deletes sandboxes.',
   '{write:sandboxes,delete:sandboxes}'),
  ('00000000-0000-0000-0000-000000000003', 'Snapshots Admin', 'Makes and deletes snapshots.',
   '{write:snapshots,delete:snapshots}'),
  ('00000000-0000-0000-0000-000000000004', 'Registries Admin', 'Adds and removes registries.',
   '{write:registries,delete:registries}'),
  ('00000000-0000-0000-0000-000000000005', 'Super Admin', 'Does everything with every resource.',
   '{write:registries,delete:registries,write:snapshots,delete:snapshots,write:sandboxes,delete:sandboxes,read:volumes,write:volumes,delete:volumes,write:regions,delete:regions,read:runners,write:runners,delete:runners,read:audit_logs,manage:secrets,read:limits,manage:sso}'),
  ('00000000-0000-0000-0000-000000000006', 'Volumes Admin', 'Makes, uses and deletes volumes.',
   '{read:volumes,write:volumes,delete:volumes}'),
  ('00000000-0000-0000-0000-000000000007', 'Auditor', 'Reads the audit log.',
   '{read:audit_logs}'),
  ('00000000-0000-0000-0000-000000000008', 'Infrastructure Admin', 'Manages regions and runners.',
   '{write:regions,delete:regions,read:runners,write:runners,delete:runners}'),
  ('00000000-0000-0000-0000-000000000009', 'SSO Admin', 'Manages identity providers.',
   '{manage:sso}');
