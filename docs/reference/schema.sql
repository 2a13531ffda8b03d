-- The tables of control's database after all migrations.
-- Printed by scripts/print-reference.ts from a migrated database. The migrations in src/control/storage/migrations/ explain the tables.

create table api_keys (
  organization_id text not null,
  user_id text not null,
  name text not null,
  hash text not null,
  masked_value text not null,
  permissions text[] not null,
  created_at timestamp(3) with time zone default now() not null,
  last_used_at timestamp(3) with time zone,
  expires_at timestamp(3) with time zone,
  maker_hash text,
  constraint api_keys_pkey PRIMARY KEY (organization_id, user_id, name),
  constraint api_keys_hash_key UNIQUE (hash),
  constraint api_keys_maker_hash_fkey FOREIGN KEY (maker_hash) REFERENCES api_keys(hash) ON DELETE CASCADE,
  constraint api_keys_organization_id_user_id_fkey FOREIGN KEY (organization_id, user_id) REFERENCES members(organization_id, user_id) ON DELETE CASCADE,
  constraint api_keys_hash_check CHECK ((hash ~ '^[0-9a-f]{64}$'::text))
);
CREATE INDEX api_keys_of_maker ON public.api_keys USING btree (maker_hash) WHERE (maker_hash IS NOT NULL);

create table audit_log (
  id bigint generated always as identity not null,
  at timestamp(3) with time zone not null,
  organization_id text,
  actor_id text not null,
  actor_email text not null,
  credential text not null,
  key_name text,
  client_address text not null,
  user_agent text not null,
  request_id text not null,
  action text not null,
  params jsonb not null,
  targets text[] not null,
  status integer,
  code text,
  constraint audit_log_pkey PRIMARY KEY (id)
);
CREATE INDEX audit_log_action ON public.audit_log USING btree (action, organization_id, at, id);
CREATE INDEX audit_log_actor ON public.audit_log USING btree (actor_id, at, id);
CREATE INDEX audit_log_organization ON public.audit_log USING btree (organization_id, at, id);
CREATE INDEX audit_log_targets ON public.audit_log USING gin (targets);
CREATE INDEX audit_log_time ON public.audit_log USING btree (at, id);

create table build_logs (
  id bigint generated always as identity not null,
  image text not null,
  at timestamp(3) with time zone not null,
  text text not null,
  constraint build_logs_pkey PRIMARY KEY (id)
);
CREATE INDEX build_logs_by_time ON public.build_logs USING btree (at);
CREATE INDEX build_logs_of_image ON public.build_logs USING btree (image, id);

create table database_id (
  id uuid default gen_random_uuid() not null
);

create table deleted_organizations (
  id text not null,
  deleted_by text not null,
  deleted_at timestamp(3) with time zone not null,
  looked_at timestamp(3) with time zone,
  constraint deleted_organizations_pkey PRIMARY KEY (id)
);

create table docker_registries (
  id text not null,
  organization_id text not null,
  name text not null,
  url text not null,
  host text not null,
  username text not null,
  password text not null,
  project text not null,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  constraint docker_registries_pkey PRIMARY KEY (id),
  constraint docker_registries_organization_id_host_project_key UNIQUE (organization_id, host, project),
  constraint docker_registries_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE
);

create table first_keys (
  hash text not null,
  constraint first_keys_pkey PRIMARY KEY (hash)
);

create table host_authority (
  is_only boolean default true not null,
  certificate text not null,
  private_key text not null,
  created_at timestamp(3) with time zone not null,
  constraint host_authority_pkey PRIMARY KEY (is_only),
  constraint host_authority_is_only_check CHECK (is_only)
);

create table hosts (
  runner_id text not null,
  runner_key_hash text not null,
  gate_key_hash text not null,
  token_hash text,
  updated_at timestamp(3) with time zone not null,
  public_url text,
  constraint hosts_pkey PRIMARY KEY (runner_id),
  constraint hosts_token_hash_key UNIQUE (token_hash),
  constraint hosts_runner_id_fkey FOREIGN KEY (runner_id) REFERENCES runners(id) ON DELETE CASCADE
);

create table idempotency_keys (
  organization_id text not null,
  key text not null,
  request_hash text not null,
  sandbox_id text not null,
  created_at timestamp(3) with time zone not null,
  constraint idempotency_keys_pkey PRIMARY KEY (organization_id, key)
);
CREATE INDEX idempotency_keys_by_time ON public.idempotency_keys USING btree (created_at);

create table identity_provider_domains (
  domain text not null,
  identity_provider_id text not null,
  constraint identity_provider_domains_pkey PRIMARY KEY (domain),
  constraint identity_provider_domains_identity_provider_id_fkey FOREIGN KEY (identity_provider_id) REFERENCES identity_providers(id) ON DELETE CASCADE
);
CREATE INDEX identity_provider_domains_provider ON public.identity_provider_domains USING btree (identity_provider_id);

create table identity_provider_roles (
  identity_provider_id text not null,
  role_id text not null,
  constraint identity_provider_roles_pkey PRIMARY KEY (identity_provider_id, role_id),
  constraint identity_provider_roles_identity_provider_id_fkey FOREIGN KEY (identity_provider_id) REFERENCES identity_providers(id) ON DELETE CASCADE,
  constraint identity_provider_roles_role_id_fkey FOREIGN KEY (role_id) REFERENCES roles(id) ON DELETE CASCADE
);
CREATE INDEX identity_provider_roles_role ON public.identity_provider_roles USING btree (role_id);

create table identity_providers (
  id text not null,
  organization_id text not null,
  name text not null,
  issuer_url text not null,
  client_id text not null,
  client_secret text not null,
  scope text not null,
  allow_any_domain boolean not null,
  trust_email_verified boolean not null,
  enabled boolean not null,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  constraint identity_providers_pkey PRIMARY KEY (id),
  constraint identity_providers_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE
);
CREATE INDEX identity_providers_organization ON public.identity_providers USING btree (organization_id);

create table images (
  name text not null,
  source jsonb not null,
  region_id text not null,
  runner_id text,
  base text,
  max_gib integer not null,
  wanted boolean default true not null,
  digest text,
  progress jsonb,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  config jsonb,
  built_for text,
  failed_on text[] default '{}'::text[] not null,
  stored_base text,
  constraint images_pkey PRIMARY KEY (name),
  constraint images_region_id_fkey FOREIGN KEY (region_id) REFERENCES regions(id),
  constraint images_runner_id_fkey FOREIGN KEY (runner_id) REFERENCES runners(id)
);
CREATE INDEX images_bases ON public.images USING btree (updated_at) WHERE ((source ->> 'kind'::text) = 'base'::text);
CREATE INDEX images_built_for ON public.images USING btree (built_for) WHERE (built_for IS NOT NULL);
CREATE INDEX images_stored_base ON public.images USING btree (stored_base) WHERE (stored_base IS NOT NULL);

create table invitation_roles (
  invitation_id text not null,
  role_id text not null,
  constraint invitation_roles_pkey PRIMARY KEY (invitation_id, role_id),
  constraint invitation_roles_invitation_id_fkey FOREIGN KEY (invitation_id) REFERENCES invitations(id) ON DELETE CASCADE,
  constraint invitation_roles_role_id_fkey FOREIGN KEY (role_id) REFERENCES roles(id) ON DELETE CASCADE
);
CREATE INDEX invitation_roles_role ON public.invitation_roles USING btree (role_id);

create table invitations (
  id text default (gen_random_uuid())::text not null,
  organization_id text not null,
  email text not null,
  invited_by text not null,
  role text not null,
  status text default 'pending'::text not null,
  expires_at timestamp(3) with time zone not null,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  constraint invitations_pkey PRIMARY KEY (id),
  constraint invitations_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint invitations_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'member'::text]))),
  constraint invitations_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'accepted'::text, 'declined'::text, 'cancelled'::text])))
);
CREATE INDEX invitations_addressed ON public.invitations USING btree (email) WHERE (status = 'pending'::text);
CREATE INDEX invitations_expiring ON public.invitations USING btree (expires_at) WHERE (status = 'pending'::text);
CREATE INDEX invitations_made ON public.invitations USING btree (organization_id, created_at);
CREATE UNIQUE INDEX invitations_pending ON public.invitations USING btree (organization_id, email) WHERE (status = 'pending'::text);
CREATE INDEX invitations_settled ON public.invitations USING btree (updated_at) WHERE (status <> 'pending'::text);

create table issuer_keys (
  id text not null,
  kind text not null,
  secret text not null,
  created_at timestamp(3) with time zone not null,
  constraint issuer_keys_pkey PRIMARY KEY (id),
  constraint issuer_keys_kind_check CHECK ((kind = ANY (ARRAY['signing'::text, 'cookie'::text])))
);

create table issuer_records (
  model text not null,
  id_hash text not null,
  secret text not null,
  grant_hash text,
  uid_hash text,
  user_code_hash text,
  account_id text,
  consumed_at timestamp(3) with time zone,
  expires_at timestamp(3) with time zone not null,
  source text,
  constraint issuer_records_pkey PRIMARY KEY (model, id_hash)
);
CREATE INDEX issuer_records_account ON public.issuer_records USING btree (account_id);
CREATE INDEX issuer_records_expires ON public.issuer_records USING btree (expires_at);
CREATE INDEX issuer_records_grant ON public.issuer_records USING btree (grant_hash);
CREATE INDEX issuer_records_uid ON public.issuer_records USING btree (model, uid_hash);
CREATE INDEX issuer_records_user_code ON public.issuer_records USING btree (model, user_code_hash);

create table leftovers (
  sandbox_id text not null,
  runner_id text not null,
  generation integer not null,
  constraint leftovers_pkey PRIMARY KEY (sandbox_id, runner_id),
  constraint leftovers_sandbox_id_fkey FOREIGN KEY (sandbox_id) REFERENCES sandboxes(id) ON DELETE CASCADE
);
CREATE INDEX leftovers_of_runner ON public.leftovers USING btree (runner_id);

create table mail_outbox (
  id text default (gen_random_uuid())::text not null,
  about text not null,
  recipient text not null,
  subject text not null,
  body text not null,
  attempts integer default 0 not null,
  next_attempt_at timestamp(3) with time zone not null,
  created_at timestamp(3) with time zone not null,
  user_id text,
  constraint mail_outbox_pkey PRIMARY KEY (id)
);
CREATE INDEX mail_outbox_about ON public.mail_outbox USING btree (about);
CREATE INDEX mail_outbox_due ON public.mail_outbox USING btree (next_attempt_at);
CREATE INDEX mail_outbox_user ON public.mail_outbox USING btree (user_id);

create table member_roles (
  organization_id text not null,
  user_id text not null,
  role_id text not null,
  constraint member_roles_pkey PRIMARY KEY (organization_id, user_id, role_id),
  constraint member_roles_organization_id_user_id_fkey FOREIGN KEY (organization_id, user_id) REFERENCES members(organization_id, user_id) ON DELETE CASCADE,
  constraint member_roles_role_id_fkey FOREIGN KEY (role_id) REFERENCES roles(id) ON DELETE CASCADE
);
CREATE INDEX member_roles_role ON public.member_roles USING btree (role_id);

create table members (
  organization_id text not null,
  user_id text not null,
  role text not null,
  created_at timestamp(3) with time zone default now() not null,
  updated_at timestamp(3) with time zone default now() not null,
  constraint members_pkey PRIMARY KEY (organization_id, user_id),
  constraint members_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint members_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  constraint members_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'member'::text])))
);
CREATE INDEX members_user ON public.members USING btree (user_id);

create table migrations (
  number integer not null,
  name text not null,
  applied_at timestamp(3) with time zone default now() not null,
  constraint migrations_pkey PRIMARY KEY (number)
);

create table organizations (
  id text default (gen_random_uuid())::text not null,
  name text not null,
  created_by text not null,
  personal boolean default false not null,
  default_region_id text,
  suspended boolean default false not null,
  suspended_at timestamp(3) with time zone,
  suspended_until timestamp(3) with time zone,
  suspension_reason text,
  suspension_cleanup_grace_period_hours integer default 24 not null,
  max_cpu_per_sandbox integer default 64 not null,
  max_memory_per_sandbox integer default 256 not null,
  max_disk_per_sandbox integer default 1024 not null,
  snapshot_quota integer default 1000 not null,
  max_snapshot_size integer default 100 not null,
  volume_quota integer default 1000 not null,
  secret_quota integer default 1000 not null,
  max_secrets_per_sandbox integer default 100 not null,
  snapshot_deactivation_timeout_minutes integer default 20160 not null,
  max_concurrent_snapshot_processing integer default 0 not null,
  sandbox_limited_network_egress boolean default false not null,
  preview_warning_enabled boolean default false not null,
  sso_enabled boolean default false not null,
  authenticated_rate_limit integer,
  authenticated_rate_limit_ttl_seconds integer,
  sandbox_create_rate_limit integer,
  sandbox_create_rate_limit_ttl_seconds integer,
  sandbox_lifecycle_rate_limit integer,
  sandbox_lifecycle_rate_limit_ttl_seconds integer,
  experimental_config jsonb,
  created_at timestamp(3) with time zone default now() not null,
  updated_at timestamp(3) with time zone default now() not null,
  otel_config text,
  constraint organizations_pkey PRIMARY KEY (id),
  constraint organizations_default_region_id_fkey FOREIGN KEY (default_region_id) REFERENCES regions(id) ON DELETE SET NULL
);
CREATE INDEX organizations_by_creator ON public.organizations USING btree (created_by);
CREATE INDEX organizations_suspended ON public.organizations USING btree (id) WHERE suspended;

create table preview_tokens (
  sandbox_id text not null,
  maker_hash text not null,
  token_hash text not null,
  constraint preview_tokens_pkey PRIMARY KEY (sandbox_id, maker_hash),
  constraint preview_tokens_maker_hash_fkey FOREIGN KEY (maker_hash) REFERENCES api_keys(hash) ON DELETE CASCADE,
  constraint preview_tokens_sandbox_id_fkey FOREIGN KEY (sandbox_id) REFERENCES sandboxes(id) ON DELETE CASCADE,
  constraint preview_tokens_token_hash_check CHECK ((token_hash ~ '^[0-9a-f]{64}$'::text))
);
CREATE INDEX preview_tokens_by_hash ON public.preview_tokens USING btree (token_hash);
CREATE INDEX preview_tokens_of_maker ON public.preview_tokens USING btree (maker_hash);

create table region_hearing (
  region_id text not null,
  since timestamp(3) with time zone not null,
  until timestamp(3) with time zone not null,
  constraint region_hearing_pkey PRIMARY KEY (region_id),
  constraint region_hearing_region_id_fkey FOREIGN KEY (region_id) REFERENCES regions(id) ON DELETE CASCADE
);

create table region_quotas (
  organization_id text not null,
  region_id text not null,
  sandbox_class text not null,
  total_cpu_quota integer,
  total_memory_quota integer,
  total_disk_quota integer,
  total_gpu_quota integer,
  max_cpu_per_sandbox integer,
  max_memory_per_sandbox integer,
  max_disk_per_sandbox integer,
  max_disk_per_non_ephemeral_sandbox integer,
  max_cpu_per_gpu integer,
  max_memory_per_gpu integer,
  max_disk_per_gpu integer,
  max_sandbox_lifespan integer,
  allowed_gpu_types text[],
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  constraint region_quotas_pkey PRIMARY KEY (organization_id, region_id, sandbox_class),
  constraint region_quotas_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint region_quotas_region_id_fkey FOREIGN KEY (region_id) REFERENCES regions(id) ON DELETE CASCADE
);
CREATE INDEX region_quotas_of_region ON public.region_quotas USING btree (region_id);

create table regions (
  id text not null,
  name text not null,
  organization_id text,
  region_type text not null,
  enforces_quota boolean default false not null,
  proxy_url text,
  ssh_gateway_url text,
  snapshot_manager_url text,
  otel_endpoint text,
  created_at timestamp(3) with time zone default now() not null,
  updated_at timestamp(3) with time zone default now() not null,
  proxy_key_hash text,
  ssh_gateway_key_hash text,
  snapshot_manager_username text,
  snapshot_manager_password text,
  saves_stopped boolean default false not null,
  constraint regions_pkey PRIMARY KEY (id),
  constraint regions_proxy_key_hash_key UNIQUE (proxy_key_hash),
  constraint regions_ssh_gateway_key_hash_key UNIQUE (ssh_gateway_key_hash),
  constraint regions_check CHECK (((region_type = 'custom'::text) = (organization_id IS NOT NULL))),
  constraint regions_proxy_key_hash_check CHECK ((proxy_key_hash ~ '^[0-9a-f]{64}$'::text)),
  constraint regions_region_type_check CHECK ((region_type = ANY (ARRAY['shared'::text, 'dedicated'::text, 'custom'::text]))),
  constraint regions_ssh_gateway_key_hash_check CHECK ((ssh_gateway_key_hash ~ '^[0-9a-f]{64}$'::text))
);
CREATE UNIQUE INDEX regions_name ON public.regions USING btree (COALESCE(organization_id, ''::text), name);

create table roles (
  id text default (gen_random_uuid())::text not null,
  organization_id text,
  name text not null,
  description text not null,
  permissions text[] not null,
  created_at timestamp(3) with time zone default now() not null,
  updated_at timestamp(3) with time zone default now() not null,
  constraint roles_pkey PRIMARY KEY (id),
  constraint roles_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE
);
CREATE UNIQUE INDEX roles_name ON public.roles USING btree (COALESCE(organization_id, ''::text), name);

create table runners (
  id text not null,
  region_id text not null,
  key_hash text not null,
  state text default 'initializing'::text not null,
  address text,
  images text[] default '{}'::text[] not null,
  cpu double precision default 0 not null,
  memory_gib double precision default 0 not null,
  disk_gib double precision default 0 not null,
  runtime text default ''::text not null,
  runtime_version text default ''::text not null,
  hard_disk_limit boolean default false not null,
  version text default ''::text not null,
  last_heartbeat_at timestamp(3) with time zone,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  pause text,
  fork text,
  is_silent boolean default false not null,
  image_storage jsonb,
  volumes text,
  gate_id text,
  gate_address text,
  gate_public_url text,
  lost_at timestamp(3) with time zone,
  is_emptied boolean default false not null,
  shares_store boolean default false not null,
  constraint runners_pkey PRIMARY KEY (id),
  constraint runners_key_hash_key UNIQUE (key_hash),
  constraint runners_region_id_fkey FOREIGN KEY (region_id) REFERENCES regions(id),
  constraint runners_volumes_check CHECK ((volumes = ANY (ARRAY['disk'::text, 'directory'::text])))
);

create table sandbox_events (
  id bigint generated always as identity not null,
  sandbox_id text not null,
  organization_id text not null,
  from_state text,
  to_state text not null,
  at timestamp(3) with time zone not null,
  by_kind text not null,
  by_id text not null,
  reason text,
  cause jsonb,
  constraint sandbox_events_pkey PRIMARY KEY (sandbox_id, id)
);
CREATE INDEX sandbox_events_by_time ON public.sandbox_events USING btree (at);
CREATE INDEX sandbox_events_of_organization ON public.sandbox_events USING btree (organization_id, at);
CREATE TRIGGER webhooks_of_mishap AFTER INSERT ON public.sandbox_events FOR EACH ROW WHEN (((new.by_kind = 'runner'::text) AND (new.from_state = new.to_state))) EXECUTE FUNCTION tell_webhooks_of_mishap();

create table sandbox_meters (
  sandbox_id uuid not null,
  at timestamp(3) with time zone not null,
  cpu_count real not null,
  cpu_used_pct real not null,
  mem_total real not null,
  mem_used real not null,
  mem_cache real not null,
  disk_total real not null,
  disk_used real,
  constraint sandbox_meters_pkey PRIMARY KEY (sandbox_id, at)
);
CREATE INDEX sandbox_meters_at ON public.sandbox_meters USING btree (at);

create table sandboxes (
  id text not null,
  organization_id text not null,
  name text not null,
  region_id text not null,
  sandbox_class text not null,
  snapshot_id text not null,
  snapshot text not null,
  image text not null,
  os_user text not null,
  env jsonb not null,
  labels jsonb not null,
  public boolean not null,
  network_block_all boolean not null,
  network_allow_list text[],
  cpu integer not null,
  memory_gib integer not null,
  disk_gib integer not null,
  state text not null,
  desired_state text not null,
  version integer not null,
  generation integer not null,
  stop_signal text default 'SIGTERM'::text not null,
  error_reason text,
  recoverable boolean,
  runner_id text,
  warm_pool_id text,
  auto_stop_interval integer not null,
  auto_pause_interval integer not null,
  auto_archive_interval integer not null,
  auto_delete_interval integer not null,
  auto_destroy_at timestamp(3) with time zone,
  last_activity_at timestamp(3) with time zone not null,
  state_changed_at timestamp(3) with time zone not null,
  stopped_at timestamp(3) with time zone,
  stuck_at timestamp(3) with time zone,
  destroyed_at timestamp(3) with time zone,
  gone_at timestamp(3) with time zone,
  preview_token text not null,
  signing_key text not null,
  created_by text not null,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  domain_allow_list text[],
  first_started_at timestamp(3) with time zone,
  spot boolean default false not null,
  spot_evicted_at timestamp(3) with time zone,
  pause_kind text,
  resize_from jsonb,
  snapshot_image text,
  progress jsonb,
  archive_id text,
  archive_sha256 text,
  archive_bytes bigint,
  archive_stored_bytes bigint,
  archived_at timestamp(3) with time zone,
  archive_not_before timestamp(3) with time zone,
  parent_id text,
  ancestor_ids text[] default '{}'::text[] not null,
  fork_kind text,
  due_at timestamp(3) with time zone generated always as (
CASE
    WHEN (state = 'destroyed'::text) THEN
    CASE
        WHEN (gone_at IS NOT NULL) THEN (((gone_at AT TIME ZONE 'UTC'::text) + '24:00:00'::interval) AT TIME ZONE 'UTC'::text)
        ELSE NULL::timestamp with time zone
    END
    ELSE LEAST(stuck_at,
    CASE
        WHEN (desired_state <> 'destroyed'::text) THEN auto_destroy_at
        ELSE NULL::timestamp with time zone
    END,
    CASE
        WHEN ((state = 'started'::text) AND (auto_stop_interval > 0)) THEN (((last_activity_at AT TIME ZONE 'UTC'::text) + ((auto_stop_interval)::double precision * '00:01:00'::interval)) AT TIME ZONE 'UTC'::text)
        ELSE NULL::timestamp with time zone
    END,
    CASE
        WHEN ((state = 'started'::text) AND (auto_pause_interval > 0)) THEN (((last_activity_at AT TIME ZONE 'UTC'::text) + ((auto_pause_interval)::double precision * '00:01:00'::interval)) AT TIME ZONE 'UTC'::text)
        ELSE NULL::timestamp with time zone
    END,
    CASE
        WHEN ((state = 'stopped'::text) AND (auto_archive_interval > 0)) THEN GREATEST((((stopped_at AT TIME ZONE 'UTC'::text) + ((auto_archive_interval)::double precision * '00:01:00'::interval)) AT TIME ZONE 'UTC'::text), archive_not_before)
        ELSE NULL::timestamp with time zone
    END,
    CASE
        WHEN ((state = ANY (ARRAY['stopped'::text, 'archived'::text])) AND (auto_delete_interval >= 0)) THEN (((stopped_at AT TIME ZONE 'UTC'::text) + ((auto_delete_interval)::double precision * '00:01:00'::interval)) AT TIME ZONE 'UTC'::text)
        ELSE NULL::timestamp with time zone
    END)
END) stored,
  label_signature bigint generated always as (label_signature(labels)) stored not null,
  build jsonb,
  otel_endpoint_override text,
  otel_endpoint text,
  entrypoint text[],
  least_generation integer,
  unset_env text[] default '{}'::text[] not null,
  volumes jsonb default '[]'::jsonb not null,
  secrets jsonb default '[]'::jsonb not null,
  secret_authority text,
  emptying text,
  save_state text,
  saved_at timestamp(3) with time zone,
  archive_base text,
  constraint sandboxes_pkey PRIMARY KEY (id),
  constraint sandboxes_region_id_fkey FOREIGN KEY (region_id) REFERENCES regions(id),
  constraint sandboxes_runner_id_fkey FOREIGN KEY (runner_id) REFERENCES runners(id),
  constraint sandboxes_emptying_check CHECK ((emptying = ANY (ARRAY['restart'::text, 'restarting'::text, 'refused'::text]))),
  constraint sandboxes_save_state_check CHECK ((save_state = ANY (ARRAY['wanted'::text, 'saved'::text])))
);
CREATE INDEX sandboxes_archive_base ON public.sandboxes USING btree (archive_base) WHERE (archive_base IS NOT NULL);
CREATE INDEX sandboxes_by_activity ON public.sandboxes USING btree (organization_id, last_activity_at, id) INCLUDE (state, desired_state, name, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, cpu, memory_gib, disk_gib, created_at, state_changed_at, updated_at, auto_destroy_at, label_signature) WHERE (state <> 'destroyed'::text);
CREATE INDEX sandboxes_by_auto_destroy ON public.sandboxes USING btree (auto_destroy_at, organization_id) WHERE ((state <> 'destroyed'::text) AND (auto_destroy_at IS NOT NULL));
CREATE INDEX sandboxes_by_change ON public.sandboxes USING btree (organization_id, state_changed_at, id) INCLUDE (state, desired_state, name, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, cpu, memory_gib, disk_gib, created_at, last_activity_at, auto_destroy_at, label_signature) WHERE (state <> 'destroyed'::text);
CREATE INDEX sandboxes_by_cpu ON public.sandboxes USING btree (organization_id, cpu, id) INCLUDE (state, desired_state, name, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, memory_gib, disk_gib, created_at, last_activity_at, state_changed_at, updated_at, auto_destroy_at, label_signature) WHERE (state <> 'destroyed'::text);
CREATE INDEX sandboxes_by_creation ON public.sandboxes USING btree (organization_id, created_at, id) INCLUDE (state, desired_state, name, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, cpu, memory_gib, disk_gib, last_activity_at, state_changed_at, updated_at, auto_destroy_at, label_signature) WHERE (state <> 'destroyed'::text);
CREATE INDEX sandboxes_by_disk ON public.sandboxes USING btree (organization_id, disk_gib, id) INCLUDE (state, desired_state, name, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, cpu, memory_gib, created_at, last_activity_at, state_changed_at, updated_at, auto_destroy_at, label_signature) WHERE (state <> 'destroyed'::text);
CREATE INDEX sandboxes_by_kind ON public.sandboxes USING btree (organization_id, public, sandbox_class, region_id, state, snapshot, id) INCLUDE (desired_state, name, recoverable, warm_pool_id, cpu, memory_gib, disk_gib, created_at, last_activity_at, state_changed_at, auto_destroy_at, label_signature) WHERE (state <> 'destroyed'::text);
CREATE INDEX sandboxes_by_label ON public.sandboxes USING gin (labels jsonb_path_ops);
CREATE INDEX sandboxes_by_memory ON public.sandboxes USING btree (organization_id, memory_gib, id) INCLUDE (state, desired_state, name, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, cpu, disk_gib, created_at, last_activity_at, state_changed_at, updated_at, auto_destroy_at, label_signature) WHERE (state <> 'destroyed'::text);
CREATE INDEX sandboxes_by_name ON public.sandboxes USING btree (organization_id, name, id) INCLUDE (state, desired_state, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, cpu, memory_gib, disk_gib, created_at, last_activity_at, state_changed_at, updated_at, auto_destroy_at, label_signature) WHERE (state <> 'destroyed'::text);
CREATE INDEX sandboxes_by_name_prefix ON public.sandboxes USING btree (lower(name) text_pattern_ops, organization_id) WHERE (state <> 'destroyed'::text);
CREATE INDEX sandboxes_by_parent ON public.sandboxes USING btree (parent_id, created_at) WHERE (parent_id IS NOT NULL);
CREATE INDEX sandboxes_by_preview_token ON public.sandboxes USING btree (preview_token);
CREATE INDEX sandboxes_by_state ON public.sandboxes USING btree (organization_id, state, last_activity_at, id) INCLUDE (desired_state, name, snapshot, region_id, sandbox_class, public, recoverable, warm_pool_id, cpu, memory_gib, disk_gib, created_at, state_changed_at, updated_at, auto_destroy_at, label_signature) WHERE (state <> 'destroyed'::text);
CREATE INDEX sandboxes_due ON public.sandboxes USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE INDEX sandboxes_emptying ON public.sandboxes USING btree (id) WHERE (emptying IS NOT NULL);
CREATE INDEX sandboxes_evicted ON public.sandboxes USING btree (organization_id, spot_evicted_at) WHERE (spot_evicted_at IS NOT NULL);
CREATE INDEX sandboxes_held ON public.sandboxes USING btree (organization_id, region_id, sandbox_class, state, desired_state) INCLUDE (id, cpu, memory_gib, disk_gib) WHERE ((state <> 'destroyed'::text) AND (warm_pool_id IS NULL));
CREATE UNIQUE INDEX sandboxes_live_name ON public.sandboxes USING btree (organization_id, name) WHERE (desired_state <> 'destroyed'::text);
CREATE INDEX sandboxes_of_image ON public.sandboxes USING btree (image) WHERE (state <> 'destroyed'::text);
CREATE INDEX sandboxes_of_runner ON public.sandboxes USING btree (runner_id, state) INCLUDE (id, cpu, memory_gib, disk_gib);
CREATE INDEX sandboxes_of_warm_pool ON public.sandboxes USING btree (warm_pool_id, state) WHERE (warm_pool_id IS NOT NULL);
CREATE INDEX sandboxes_owed ON public.sandboxes USING btree (runner_id, state_changed_at) WHERE ((stuck_at IS NOT NULL) OR ((state = 'destroyed'::text) AND (gone_at IS NULL)) OR ((state = 'error'::text) AND (desired_state = 'destroyed'::text)));
CREATE INDEX sandboxes_recoverable ON public.sandboxes USING btree (organization_id) WHERE (COALESCE(recoverable, false) AND (state <> 'destroyed'::text));
CREATE INDEX sandboxes_saves ON public.sandboxes USING btree (save_state) WHERE (save_state IS NOT NULL);
CREATE INDEX sandboxes_unsaved ON public.sandboxes USING btree (region_id) WHERE ((state = 'stopped'::text) AND (save_state IS NULL));
CREATE INDEX sandboxes_waiting_for_image ON public.sandboxes USING btree (image, created_at) WHERE (state = ANY (ARRAY['pending_build'::text, 'building_snapshot'::text]));
CREATE INDEX sandboxes_with_secrets ON public.sandboxes USING btree (organization_id) WHERE ((secrets <> '[]'::jsonb) AND (gone_at IS NULL));
CREATE INDEX sandboxes_with_volumes ON public.sandboxes USING btree (organization_id) WHERE ((volumes <> '[]'::jsonb) AND (gone_at IS NULL));
CREATE TRIGGER forget_save BEFORE UPDATE OF desired_state ON public.sandboxes FOR EACH ROW WHEN (((new.save_state IS NOT NULL) AND (new.desired_state = ANY (ARRAY['started'::text, 'paused'::text])))) EXECUTE FUNCTION forget_save();
CREATE TRIGGER note_volumes_made AFTER UPDATE OF first_started_at ON public.sandboxes FOR EACH ROW WHEN (((old.first_started_at IS NULL) AND (new.first_started_at IS NOT NULL) AND (new.volumes <> '[]'::jsonb))) EXECUTE FUNCTION note_volumes_made();
CREATE TRIGGER sandbox_meters_gone AFTER DELETE ON public.sandboxes REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION forget_sandbox_meters();
CREATE TRIGGER shed_when_gone AFTER UPDATE OF gone_at ON public.sandboxes FOR EACH ROW WHEN (((old.gone_at IS NULL) AND (new.gone_at IS NOT NULL) AND (new.spot_evicted_at IS NULL))) EXECUTE FUNCTION shed_when_gone();
CREATE TRIGGER webhooks_of_new_sandbox AFTER INSERT ON public.sandboxes FOR EACH ROW WHEN ((new.warm_pool_id IS NULL)) EXECUTE FUNCTION tell_webhooks_of_sandbox();
CREATE TRIGGER webhooks_of_sandbox AFTER UPDATE OF state ON public.sandboxes FOR EACH ROW WHEN (((new.warm_pool_id IS NULL) AND ((old.state <> new.state) OR (old.warm_pool_id IS NOT NULL)))) EXECUTE FUNCTION tell_webhooks_of_sandbox();

create table secret_authorities (
  organization_id text not null,
  certificate text not null,
  private_key text not null,
  created_at timestamp(3) with time zone not null,
  constraint secret_authorities_pkey PRIMARY KEY (organization_id),
  constraint secret_authorities_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE
);

create table secrets (
  id text not null,
  organization_id text not null,
  name text not null,
  description text,
  placeholder text not null,
  value text not null,
  hosts text[] not null,
  version integer default 1 not null,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  constraint secrets_pkey PRIMARY KEY (id),
  constraint secrets_organization_id_name_key UNIQUE (organization_id, name),
  constraint secrets_placeholder_key UNIQUE (placeholder),
  constraint secrets_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE
);

create table sign_in_links (
  user_id text not null,
  hash text not null,
  expires_at timestamp(3) with time zone not null,
  constraint sign_in_links_pkey PRIMARY KEY (user_id),
  constraint sign_in_links_hash_key UNIQUE (hash),
  constraint sign_in_links_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);

create table signed_previews (
  token_hash text not null,
  sandbox_id text not null,
  port integer not null,
  created_at timestamp(3) with time zone not null,
  expires_at timestamp(3) with time zone not null,
  maker_hash text,
  constraint signed_previews_pkey PRIMARY KEY (token_hash),
  constraint signed_previews_maker_hash_fkey FOREIGN KEY (maker_hash) REFERENCES api_keys(hash) ON DELETE CASCADE,
  constraint signed_previews_sandbox_id_fkey FOREIGN KEY (sandbox_id) REFERENCES sandboxes(id) ON DELETE CASCADE,
  constraint signed_previews_port_check CHECK (((port >= 1) AND (port <= 65535))),
  constraint signed_previews_token_hash_check CHECK ((token_hash ~ '^[0-9a-f]{64}$'::text))
);
CREATE INDEX signed_previews_by_expiry ON public.signed_previews USING btree (expires_at);
CREATE INDEX signed_previews_of_maker ON public.signed_previews USING btree (maker_hash) WHERE (maker_hash IS NOT NULL);
CREATE INDEX signed_previews_of_sandbox ON public.signed_previews USING btree (sandbox_id, expires_at);

create table signing_keys (
  id text not null,
  public_key jsonb not null,
  private_key text not null,
  created_at timestamp(3) with time zone not null,
  constraint signing_keys_pkey PRIMARY KEY (id)
);

create table snapshots (
  id text default (gen_random_uuid())::text not null,
  organization_id text,
  general boolean default false not null,
  name text not null,
  state text not null,
  error_reason text,
  image text not null,
  image_name text,
  sandbox_class text default 'container'::text not null,
  os_user text default 'daytona'::text not null,
  entrypoint text[],
  cpu integer not null,
  gpu integer default 0 not null,
  memory_gib integer not null,
  disk_gib integer not null,
  size double precision,
  created_at timestamp(3) with time zone default now() not null,
  updated_at timestamp(3) with time zone default now() not null,
  last_used_at timestamp(3) with time zone,
  source_sandbox_id text,
  dockerfile text,
  constraint snapshots_pkey PRIMARY KEY (id),
  constraint snapshots_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint snapshots_check CHECK ((general OR (organization_id IS NOT NULL))),
  constraint snapshots_cpu_check CHECK ((cpu > 0)),
  constraint snapshots_disk_gib_check CHECK ((disk_gib > 0)),
  constraint snapshots_memory_gib_check CHECK ((memory_gib > 0)),
  constraint snapshots_state_check CHECK ((state = ANY (ARRAY['building'::text, 'pending'::text, 'pulling'::text, 'snapshotting'::text, 'active'::text, 'inactive'::text, 'error'::text, 'build_failed'::text, 'removing'::text])))
);
CREATE UNIQUE INDEX snapshots_name ON public.snapshots USING btree (COALESCE(organization_id, ''::text), name);
CREATE INDEX snapshots_of_image ON public.snapshots USING btree (image);
CREATE TRIGGER webhooks_of_new_snapshot AFTER INSERT ON public.snapshots FOR EACH ROW WHEN ((new.organization_id IS NOT NULL)) EXECUTE FUNCTION tell_webhooks_of_snapshot();
CREATE TRIGGER webhooks_of_removed_snapshot AFTER DELETE ON public.snapshots FOR EACH ROW WHEN ((old.organization_id IS NOT NULL)) EXECUTE FUNCTION tell_webhooks_of_snapshot();
CREATE TRIGGER webhooks_of_snapshot AFTER UPDATE OF state ON public.snapshots FOR EACH ROW WHEN (((new.organization_id IS NOT NULL) AND (old.state <> new.state))) EXECUTE FUNCTION tell_webhooks_of_snapshot();

create table ssh_access (
  id text not null,
  token_hash text not null,
  sandbox_id text not null,
  maker_hash text,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  expires_at timestamp(3) with time zone not null,
  constraint ssh_access_pkey PRIMARY KEY (id),
  constraint ssh_access_token_hash_key UNIQUE (token_hash),
  constraint ssh_access_maker_hash_fkey FOREIGN KEY (maker_hash) REFERENCES api_keys(hash) ON DELETE CASCADE,
  constraint ssh_access_sandbox_id_fkey FOREIGN KEY (sandbox_id) REFERENCES sandboxes(id) ON DELETE CASCADE,
  constraint ssh_access_token_hash_check CHECK ((token_hash ~ '^[0-9a-f]{64}$'::text))
);
CREATE INDEX ssh_access_by_expiry ON public.ssh_access USING btree (expires_at);
CREATE INDEX ssh_access_of_maker ON public.ssh_access USING btree (maker_hash) WHERE (maker_hash IS NOT NULL);
CREATE INDEX ssh_access_of_sandbox ON public.ssh_access USING btree (sandbox_id, expires_at);

create table sso_attempts (
  state_hash text not null,
  browser_hash text not null,
  identity_provider_id text not null,
  issuer_url text not null,
  nonce text not null,
  code_verifier text not null,
  expires_at timestamp(3) with time zone not null,
  source text,
  constraint sso_attempts_pkey PRIMARY KEY (state_hash),
  constraint sso_attempts_identity_provider_id_fkey FOREIGN KEY (identity_provider_id) REFERENCES identity_providers(id) ON DELETE CASCADE
);
CREATE INDEX sso_attempts_expiry ON public.sso_attempts USING btree (expires_at);
CREATE INDEX sso_attempts_provider ON public.sso_attempts USING btree (identity_provider_id);

create table sso_links (
  id text default (gen_random_uuid())::text not null,
  identity_provider_id text not null,
  issuer_url text not null,
  subject text not null,
  user_id text not null,
  provider_email text,
  state text not null,
  created_at timestamp(3) with time zone not null,
  expires_at timestamp(3) with time zone not null,
  constraint sso_links_pkey PRIMARY KEY (id),
  constraint sso_links_identity_provider_id_issuer_url_subject_key UNIQUE (identity_provider_id, issuer_url, subject),
  constraint sso_links_identity_provider_id_fkey FOREIGN KEY (identity_provider_id) REFERENCES identity_providers(id) ON DELETE CASCADE,
  constraint sso_links_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  constraint sso_links_state_check CHECK ((state = ANY (ARRAY['pending'::text, 'linked'::text, 'rejected'::text])))
);
CREATE INDEX sso_links_user ON public.sso_links USING btree (user_id);

create table ticket_keys (
  id text not null,
  public_key text not null,
  private_key text not null,
  created_at timestamp with time zone not null,
  constraint ticket_keys_pkey PRIMARY KEY (id)
);

create table user_identities (
  issuer text not null,
  subject text not null,
  user_id text,
  email text not null,
  email_verified boolean not null,
  name text not null,
  said_at timestamp(3) with time zone not null,
  is_source boolean not null,
  created_at timestamp(3) with time zone default now() not null,
  constraint user_identities_pkey PRIMARY KEY (issuer, subject),
  constraint user_identities_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);
CREATE INDEX user_identities_user ON public.user_identities USING btree (user_id);

create table user_passwords (
  user_id text not null,
  hash text not null,
  changed_at timestamp(3) with time zone not null,
  constraint user_passwords_pkey PRIMARY KEY (user_id),
  constraint user_passwords_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE
);

create table users (
  id text default (gen_random_uuid())::text not null,
  name text not null,
  email text not null,
  email_verified boolean default false not null,
  email_verified_by text,
  system_role text default 'user'::text not null,
  public_keys jsonb default '[]'::jsonb not null,
  created_at timestamp(3) with time zone default now() not null,
  updated_at timestamp(3) with time zone default now() not null,
  constraint users_pkey PRIMARY KEY (id),
  constraint users_system_role_check CHECK ((system_role = ANY (ARRAY['admin'::text, 'user'::text])))
);
CREATE UNIQUE INDEX users_email ON public.users USING btree (lower(email));

create table volumes (
  id text not null,
  organization_id text not null,
  name text not null,
  state text not null,
  error_reason text,
  size_gib integer not null,
  driver text,
  region_id text,
  runner_id text,
  is_made boolean default false not null,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  last_used_at timestamp(3) with time zone,
  constraint volumes_pkey PRIMARY KEY (id),
  constraint volumes_driver_check CHECK ((driver = ANY (ARRAY['disk'::text, 'directory'::text]))),
  constraint volumes_size_gib_check CHECK ((size_gib > 0)),
  constraint volumes_state_check CHECK ((state = ANY (ARRAY['ready'::text, 'error'::text, 'pending_delete'::text, 'deleted'::text])))
);
CREATE INDEX volumes_ended ON public.volumes USING btree (updated_at) WHERE (state = ANY (ARRAY['pending_delete'::text, 'deleted'::text]));
CREATE UNIQUE INDEX volumes_name ON public.volumes USING btree (organization_id, name) WHERE (state = ANY (ARRAY['ready'::text, 'error'::text]));
CREATE INDEX volumes_organization ON public.volumes USING btree (organization_id, created_at);
CREATE INDEX volumes_region ON public.volumes USING btree (region_id);
CREATE INDEX volumes_runner ON public.volumes USING btree (runner_id) WHERE (state <> 'deleted'::text);
CREATE TRIGGER webhooks_of_volume AFTER INSERT ON public.volumes FOR EACH ROW EXECUTE FUNCTION tell_webhooks_of_volume();
CREATE TRIGGER webhooks_of_volume_state AFTER UPDATE OF state ON public.volumes FOR EACH ROW WHEN ((old.state <> new.state)) EXECUTE FUNCTION tell_webhooks_of_volume();

create table warm_pools (
  id text not null,
  organization_id text,
  snapshot_id text not null,
  region_id text not null,
  size integer not null,
  demand double precision default 0 not null,
  demand_at timestamp(3) with time zone not null,
  error_reason text,
  not_before timestamp(3) with time zone,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  constraint warm_pools_pkey PRIMARY KEY (id),
  constraint warm_pools_organization_id_snapshot_id_region_id_key UNIQUE NULLS NOT DISTINCT (organization_id, snapshot_id, region_id),
  constraint warm_pools_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint warm_pools_region_id_fkey FOREIGN KEY (region_id) REFERENCES regions(id) ON DELETE CASCADE,
  constraint warm_pools_snapshot_id_fkey FOREIGN KEY (snapshot_id) REFERENCES snapshots(id) ON DELETE CASCADE,
  constraint warm_pools_size_check CHECK ((size >= 0))
);

create table webhook_applications (
  organization_id text not null,
  provider text not null,
  application_id text,
  last_error text,
  retry_count integer not null,
  retry_at timestamp(3) with time zone,
  is_listening boolean default false not null,
  has_endpoints boolean default false not null,
  endpoints_read_at timestamp(3) with time zone,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  constraint webhook_applications_pkey PRIMARY KEY (organization_id),
  constraint webhook_applications_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint webhook_applications_provider_check CHECK ((provider = ANY (ARRAY['embedded'::text, 'svix'::text])))
);
CREATE INDEX webhook_applications_to_retry ON public.webhook_applications USING btree (retry_at) WHERE (retry_at IS NOT NULL);

create table webhook_attempts (
  id bigint generated always as identity not null,
  delivery_id bigint not null,
  endpoint_id text not null,
  number integer not null,
  at timestamp(3) with time zone not null,
  duration_milliseconds integer not null,
  status integer,
  error text,
  is_delivered boolean not null,
  constraint webhook_attempts_pkey PRIMARY KEY (id),
  constraint webhook_attempts_delivery_id_fkey FOREIGN KEY (delivery_id) REFERENCES webhook_deliveries(id) ON DELETE CASCADE
);
CREATE INDEX webhook_attempts_of_delivery ON public.webhook_attempts USING btree (delivery_id);
CREATE INDEX webhook_attempts_of_endpoint ON public.webhook_attempts USING btree (endpoint_id, id);

create table webhook_deliveries (
  id bigint generated always as identity not null,
  message_id bigint not null,
  organization_id text not null,
  endpoint_id text not null,
  lane text not null,
  state text not null,
  attempts integer default 0 not null,
  due_at timestamp(3) with time zone,
  ended_at timestamp(3) with time zone,
  constraint webhook_deliveries_pkey PRIMARY KEY (id),
  constraint webhook_deliveries_message_id_fkey FOREIGN KEY (message_id) REFERENCES webhook_messages(id) ON DELETE CASCADE,
  constraint webhook_deliveries_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'delivered'::text, 'failed'::text])))
);
CREATE INDEX webhook_deliveries_by_end ON public.webhook_deliveries USING btree (endpoint_id, id);
CREATE INDEX webhook_deliveries_due ON public.webhook_deliveries USING btree (endpoint_id, due_at) WHERE ((state = 'waiting'::text) AND (due_at IS NOT NULL));
CREATE INDEX webhook_deliveries_in_lane ON public.webhook_deliveries USING btree (endpoint_id, lane, message_id) WHERE (state = 'waiting'::text);
CREATE INDEX webhook_deliveries_next ON public.webhook_deliveries USING btree (due_at) WHERE ((state = 'waiting'::text) AND (due_at IS NOT NULL));
CREATE INDEX webhook_deliveries_of_message ON public.webhook_deliveries USING btree (message_id);

create table webhook_endpoints (
  id text not null,
  organization_id text not null,
  url text not null,
  description text not null,
  events text[] not null,
  secret text not null,
  previous_secret text,
  previous_secret_until timestamp(3) with time zone,
  disabled_at timestamp(3) with time zone,
  disabled_reason text,
  failing_since timestamp(3) with time zone,
  created_at timestamp(3) with time zone not null,
  updated_at timestamp(3) with time zone not null,
  constraint webhook_endpoints_pkey PRIMARY KEY (id),
  constraint webhook_endpoints_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES webhook_applications(organization_id) ON DELETE CASCADE
);
CREATE INDEX webhook_endpoints_of_organization ON public.webhook_endpoints USING btree (organization_id, created_at, id);

create table webhook_messages (
  id bigint generated always as identity not null,
  public_id text default ('msg_'::text || replace((gen_random_uuid())::text, '-'::text, ''::text)) not null,
  organization_id text not null,
  event text not null,
  subject_id text not null,
  name text,
  sandbox_class text,
  old_state text,
  state text,
  at timestamp(3) with time zone not null,
  is_dispatched boolean default false not null,
  by_kind text,
  by_id text,
  reason text,
  cause jsonb,
  labels jsonb,
  constraint webhook_messages_pkey PRIMARY KEY (id),
  constraint webhook_messages_public_id_key UNIQUE (public_id)
);
CREATE INDEX webhook_messages_by_time ON public.webhook_messages USING btree (at);
CREATE INDEX webhook_messages_to_dispatch ON public.webhook_messages USING btree (id) WHERE (NOT is_dispatched);

create table webhook_portal_tokens (
  hash text not null,
  kind text not null,
  organization_id text not null,
  user_id text not null,
  expires_at timestamp(3) with time zone not null,
  maker_hash text,
  created_at timestamp with time zone default clock_timestamp() not null,
  constraint webhook_portal_tokens_pkey PRIMARY KEY (hash),
  constraint webhook_portal_tokens_maker_hash_fkey FOREIGN KEY (maker_hash) REFERENCES api_keys(hash) ON DELETE CASCADE,
  constraint webhook_portal_tokens_organization_id_fkey FOREIGN KEY (organization_id) REFERENCES organizations(id) ON DELETE CASCADE,
  constraint webhook_portal_tokens_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id) ON DELETE CASCADE,
  constraint webhook_portal_tokens_hash_check CHECK ((hash ~ '^[0-9a-f]{64}$'::text)),
  constraint webhook_portal_tokens_kind_check CHECK ((kind = ANY (ARRAY['link'::text, 'session'::text])))
);
CREATE INDEX webhook_portal_tokens_by_expiry ON public.webhook_portal_tokens USING btree (expires_at);
CREATE INDEX webhook_portal_tokens_of_maker ON public.webhook_portal_tokens USING btree (maker_hash) WHERE (maker_hash IS NOT NULL);
CREATE INDEX webhook_portal_tokens_of_user ON public.webhook_portal_tokens USING btree (organization_id, user_id, created_at);

CREATE OR REPLACE FUNCTION public.forget_sandbox_meters()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  delete from sandbox_meters using gone where sandbox_id = gone.id::uuid;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.forget_save()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.save_state := null;
  return new;
end $function$;

CREATE OR REPLACE FUNCTION public.label_signature(labels jsonb)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE
RETURN (SELECT COALESCE(bit_or(((1)::bigint << (((hashed.hash >> bits.shift) & (63)::bigint))::integer)), (0)::bigint) AS "coalesce" FROM ((jsonb_each_text(label_signature.labels) jsonb_each_text(key, value) CROSS JOIN LATERAL (SELECT hashtextextended(((jsonb_each_text.key || '='::text) || jsonb_each_text.value), (0)::bigint) AS hashtextextended) hashed(hash)) CROSS JOIN (VALUES (0), (6), (12)) bits(shift)));

CREATE OR REPLACE FUNCTION public.note_volumes_made()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform from volumes
  where not is_made and id in (select mount ->> 'volumeId' from jsonb_array_elements(new.volumes) mount)
  order by id for no key update;
  update volumes set is_made = true
  where not is_made and id in (select mount ->> 'volumeId' from jsonb_array_elements(new.volumes) mount);
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.shed_when_gone()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update sandboxes set env = '{}', unset_env = '{}', labels = '{}', entrypoint = null, build = null, volumes = '[]',
    secrets = '[]', secret_authority = null
  where id = new.id and (env <> '{}' or unset_env <> '{}' or labels <> '{}' or entrypoint is not null
    or build is not null or volumes <> '[]' or secrets <> '[]' or secret_authority is not null);
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.tell_webhooks_of_mishap()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  sandbox sandboxes;
begin
  if not exists (select from webhook_applications where organization_id = new.organization_id and is_listening) then
    return null;
  end if;
  select * into sandbox from sandboxes where id = new.sandbox_id and warm_pool_id is null for no key update;
  if found then perform tell_webhooks_why('sandbox.mishap', null, new.at, sandbox, new); end if;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.tell_webhooks_of_sandbox()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  said sandbox_events;
begin
  -- Most organizations have no endpoint, so this is checked first.
  if not exists (select from webhook_applications where organization_id = new.organization_id and is_listening) then
    return null;
  end if;
  select * into said from sandbox_events where sandbox_id = new.id order by id desc limit 1;
  if said.to_state is distinct from new.state or said.at is distinct from new.state_changed_at then
    said := null;
  end if;
  -- A warm sandbox is announced as created when it is claimed.
  if tg_op = 'INSERT' or old.warm_pool_id is not null then
    perform tell_webhooks_why('sandbox.created', null, new.created_at, new, said);
  else
    perform tell_webhooks_why('sandbox.state.updated', old.state, new.updated_at, new, said);
  end if;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.tell_webhooks_of_snapshot()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  subject snapshots := case when tg_op = 'DELETE' then old else new end;
begin
  if not exists (select from webhook_applications where organization_id = subject.organization_id and is_listening) then
    return null;
  end if;
  insert into webhook_messages (organization_id, event, subject_id, name, old_state, state, at, reason)
  values (subject.organization_id,
    case tg_op when 'INSERT' then 'snapshot.created' when 'UPDATE' then 'snapshot.state.updated' else 'snapshot.removed' end,
    subject.id, subject.name,
    case when tg_op = 'UPDATE' then old.state end,
    case when tg_op <> 'DELETE' then new.state end,
    case tg_op when 'INSERT' then new.created_at when 'UPDATE' then new.updated_at else clock_timestamp() end,
    case when tg_op <> 'DELETE' then new.error_reason end);
  perform pg_notify('webhook_messages', '');
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.tell_webhooks_of_volume()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if not exists (select from webhook_applications where organization_id = new.organization_id and is_listening) then
    return null;
  end if;
  insert into webhook_messages (organization_id, event, subject_id, name, old_state, state, at, reason)
  values (new.organization_id, case tg_op when 'INSERT' then 'volume.created' else 'volume.state.updated' end,
    new.id, new.name, case when tg_op = 'UPDATE' then old.state end, new.state, new.updated_at, new.error_reason);
  perform pg_notify('webhook_messages', '');
  return null;
end $function$;

CREATE OR REPLACE FUNCTION public.tell_webhooks_why(event text, old_state text, at timestamp with time zone, sandbox sandboxes, said sandbox_events)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  insert into webhook_messages (organization_id, event, subject_id, name, sandbox_class, old_state, state, at,
    by_kind, by_id, reason, cause, labels)
  values ($4.organization_id, $1, $4.id,
    -- A sandbox that is to be destroyed is renamed (src/control/sandboxes/verbs/destroy.ts), so the old name is
    -- restored here.
    case when $4.desired_state = 'destroyed' then regexp_replace($4.name, '^DESTROYED_(.*)_\d+$', '\1') else $4.name end,
    $4.sandbox_class, $2, $4.state, $3, $5.by_kind, $5.by_id, $5.reason, $5.cause,
    case when octet_length($4.labels::text) <= 4096 then $4.labels end);
  perform pg_notify('webhook_messages', '');
end $function$;
