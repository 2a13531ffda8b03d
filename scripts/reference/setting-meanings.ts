import { rateMeaning } from '#src/kit/rate.ts'

/** Meanings of the settings whose program does not print one itself when they are missing. */
export const meanings: Record<string, string> = {
  ALCOVE_RATE_LIMIT_ANONYMOUS: `of calls without a credential, by address: ${rateMeaning}; no limit unless told`,
  ALCOVE_RATE_LIMIT_FAILED_AUTH: `of calls with a wrong credential or none, by address: ${rateMeaning}; no limit unless told`,
  ALCOVE_RATE_LIMIT_AUTHENTICATED: `of an organization, for all that has no limit of its own: ${rateMeaning}; no limit unless told`,
  ALCOVE_RATE_LIMIT_SANDBOX_CREATE: `of an organization, for create and fork: ${rateMeaning}; no limit unless told`,
  ALCOVE_RATE_LIMIT_SANDBOX_LIFECYCLE: `of an organization, for start, stop, pause, resize, archive, recover and delete: ${rateMeaning}; no limit unless told`,
  ALCOVE_TRUSTED_PROXIES:
    'how many reverse proxies stand in front of control, each adding to X-Forwarded-For, by which callers are then told apart; 0 unless told: the header is not read',
  ALCOVE_PUBLIC_URL:
    'what clients call instead of --port, where a reverse proxy is in front of it, such as https://alcove.example.com; set together with ALCOVE_PROXY_URL',
  ALCOVE_PROXY_URL:
    'the same of toolboxes and previews, such as https://sandboxes.example.net; previews are one name below, which the reverse proxy sends along',
  ALCOVE_LOG_LEVEL: 'trace, debug, info, warn, error, fatal or silent; info unless told',
  ALCOVE_FIRST_KEY: 'API key of the first administrator, made while there is no user; none unless told',
  ALCOVE_OLDER_ENCRYPTION_KEYS:
    'keys that were ALCOVE_ENCRYPTION_KEY before, with commas between: they still read; none unless told',
  ALCOVE_AUDIT_DAYS: 'how many days the audit log is kept; 90 unless told',
  ALCOVE_METER_HOURS: 'how many hours it is kept what sandboxes used; 48 unless told',
  ALCOVE_EXECUTE_TIMEOUT_SECONDS:
    'limit in seconds of a process/execute that names no timeout and carries no X-Daytona-SDK-Version header. Default: 10. 0 disables it.',
  ALCOVE_DISK_MIB_PER_SECOND:
    'how many MiB a sandbox may read, and as many write, of its disk in a second. Default: 200. 0 disables the limit. `alcove doctor` says what holds.',
  ALCOVE_METER_SECONDS:
    'every how many seconds it is written down what sandboxes use, at most 3600; 60 unless told, 0: never',
  ALCOVE_COLLECTOR_KEY:
    'the service key of a telemetry collector, which may read where telemetry goes; 32 characters or more; none unless told',
  ALCOVE_DEFAULT_REGION_MAY_CHANGE:
    'true: an organization that has a default region may choose another; false unless told',
  ALCOVE_OIDC_ISSUER:
    'OpenID issuers whose tokens are believed, as URLs with commas between; clients are told of the first; none unless told',
  ALCOVE_OIDC_AUDIENCE: 'what a token must be made for; alcove unless told',
  ALCOVE_OIDC_CLIENT_ID: 'the client as which the dashboard and `alcove login` sign in people; alcove unless told',
  ALCOVE_OIDC_CLOCK_SKEW_SECONDS: 'by how much the clock of an issuer may differ; 30 unless told',
  ALCOVE_CACHE_DIR: 'what all servers of a host share, such as built images; /var/cache/alcove unless told',
  ALCOVE_IMAGES_DIR:
    'images as files (OCI layouts and archives, docker save), which callers may name; <data>/images unless told',
  ALCOVE_REGISTRIES:
    'registries, as host or host:port with commas between, that images may come from, such as docker.io,ghcr.io; any unless told',
  ALCOVE_PRIVATE_REGISTRIES:
    'registries that may be on this machine or at addresses that are not public, spoken to through the network of the host; none unless told',
  ALCOVE_OPEN_NETWORKS:
    'IPv4 addresses and networks, with commas between, that sandboxes may reach although they are not public or belong to the networks of the host, such as 10.1.0.0/16; never the host itself; none unless told',
  ALCOVE_PLAIN_REGISTRIES:
    'registries, as host:port with commas between, that are spoken to without TLS, wherever they are; none unless told',
  ALCOVE_REGISTRY_AUTH:
    'a file with credentials for registries, as containers-auth.json(5) has them, used for every caller; none unless told',
  ALCOVE_OVERCOMMIT:
    'how many times the cpu, memory and disk of the machine may be promised to sandboxes; 64,8,8 unless told',
  ALCOVE_DASHBOARD_URL:
    'the page that browsers are sent to when somebody has signed in by an identity provider of their organization, or could not; none unless told',
  ALCOVE_SSO_FOR_ALL:
    'true: every organization that people share may have single sign-on, not only those that an operator enables it for; false unless told',
  ALCOVE_ALLOW_PRIVATE_TARGETS:
    'addresses and networks, with commas between, that identity providers and webhooks of organizations may be at besides the public Internet, such as 10.1.0.0/16; none unless told',
  ALCOVE_WEBHOOK_PROVIDER: 'who sends webhooks: embedded, svix or none; embedded unless told',
  ALCOVE_SVIX_URL: 'where the API of Svix is, for ALCOVE_WEBHOOK_PROVIDER=svix; https://api.svix.com unless told',
  ALCOVE_SVIX_TOKEN: 'the API token of Svix; needed for ALCOVE_WEBHOOK_PROVIDER=svix',
  ALCOVE_MOST_WARM:
    'how many sandboxes of each snapshot are kept started ahead at most, as they are in demand; 8 unless told, 0: none',
  ALCOVE_RUNNER_SOCKET: 'the unix socket that toolboxes are served on; <data>/run/runner.sock unless told',
  ALCOVE_ARCHIVE_STORE:
    'where the disks of archived sandboxes lie: file:///absolute/path, or s3://bucket/prefix?endpoint=URL&region=NAME; <data>/archive unless told',
  ALCOVE_ARCHIVE_S3_KEY: 'the access key of an S3 archive store',
  ALCOVE_ARCHIVE_S3_SECRET: 'the secret of that key',
  ALCOVE_SMTP_URL:
    'the mail server: smtp://name:password@host:587, or smtps:// for TLS from the first byte; a password is sent through TLS only; unless told, mail is written to the log',
  ALCOVE_MAIL_FROM: 'who mail is from: alcove@example.com or Alcove <alcove@example.com>; needed with ALCOVE_SMTP_URL',
  DATABASE_URL: 'a PostgreSQL that somebody else runs, instead of the one that `up` brings',
  PATH: 'where programs of the system are looked for',
}
