import { rateMeaning } from '#src/kit/rate.ts'

const rate = `Written as ${rateMeaning}. Default: no limit.`

/** What a setting means, for settings about which the code of their program has no text. */
export const meanings: Record<string, string> = {
  ALCOVE_RATE_LIMIT_ANONYMOUS: `Limit of calls without a credential, for each address. ${rate}`,
  ALCOVE_RATE_LIMIT_FAILED_AUTH: `Limit of calls with a wrong credential or none, for each address. ${rate}`,
  ALCOVE_RATE_LIMIT_AUTHENTICATED: `Limit of all calls that have no limit of their own, for each organization. ${rate}`,
  ALCOVE_RATE_LIMIT_SANDBOX_CREATE: `Limit of creates and forks, for each organization. ${rate}`,
  ALCOVE_RATE_LIMIT_SANDBOX_LIFECYCLE: `Limit of starts, stops, pauses, resizes, archives, recoveries and deletes, for each organization. ${rate}`,
  ALCOVE_TRUSTED_PROXIES:
    'Number of reverse proxies in front of control. Each adds an address to X-Forwarded-For, by which control distinguishes callers. Default: 0, the header is ignored.',
  ALCOVE_PUBLIC_URL:
    'Public base URL of the API where a reverse proxy is in front of it, such as https://alcove.example.com. Set it together with ALCOVE_PROXY_URL.',
  ALCOVE_PROXY_URL:
    'Public base URL of the gate (formerly called the proxy), which serves toolboxes and previews, such as https://sandboxes.example.net. Previews use subdomains of it, so proxy *.sandboxes.example.net too.',
  ALCOVE_LOG_LEVEL: 'Lowest level that is logged: trace, debug, info, warn, error, fatal or silent. Default: info.',
  ALCOVE_FIRST_KEY:
    'API key of the first administrator. Control creates it only while there is no user. Default: none.',
  ALCOVE_OLDER_ENCRYPTION_KEYS:
    'Former values of ALCOVE_ENCRYPTION_KEY, separated by commas. They still decrypt; new secrets use the current key. Default: none.',
  ALCOVE_AUDIT_DAYS: 'Days that the audit log is kept. Default: 90.',
  ALCOVE_LOST_AFTER_MINUTES:
    'Minutes of silence after which a host is lost, and its sandboxes are given up. Default: 10. 0: only `alcove runner lost` gives up a host.',
  ALCOVE_METER_HOURS: 'Hours that the usage samples of sandboxes are kept. Default: 48.',
  ALCOVE_EXECUTE_TIMEOUT_SECONDS:
    'Limit in seconds of a process/execute that names no timeout and carries no X-Daytona-SDK-Version header. Default: 10. 0 disables it.',
  ALCOVE_DISK_MIB_PER_SECOND:
    'Limit of disk reads, and of disk writes, of each sandbox in MiB per second. Default: 200. 0 disables it. `alcove doctor` says what the host enforces.',
  ALCOVE_SUDO:
    'true: the default user of a sandbox may run commands as root with sudo. false: sandboxes have no sudo, from their next start on. Default: true.',
  ALCOVE_METER_SECONDS: 'Seconds between two usage samples of a sandbox (0-3600). Default: 60. 0 disables metering.',
  ALCOVE_SSH_LISTEN:
    'Address and port of the SSH gateway, such as 0.0.0.0:2222. Default: the host of `--host`, and the port of `--port` plus 2. off: no SSH access.',
  ALCOVE_HOSTS_LISTEN:
    'host:port at which control listens for hosts of other machines, such as 198.51.100.1:4603. Default: none, no machine may join over the network.',
  ALCOVE_SSH_URL:
    'Where clients reach the SSH gateway, such as ssh://alcove.example.com:2222. Default: the host of the other public URLs, and the port on which the gateway listens.',
  ALCOVE_SSH_GATEWAY_KEY: 'Service key of the SSH gateway. Default: none, there is no SSH access.',
  ALCOVE_SSH_PUBLIC_HOST_KEY: 'Public host key of the SSH gateway, which control shows to clients. Default: none.',
  ALCOVE_COLLECTOR_KEY:
    'Service key of a telemetry collector. With it, the collector may read where each organization sends its telemetry. 32 characters or more. Default: none.',
  ALCOVE_DEFAULT_REGION_MAY_CHANGE:
    'true: an organization that has a default region may choose another one. Default: false.',
  ALCOVE_OIDC_ISSUER:
    'OpenID issuers whose tokens are accepted, as URLs separated by commas. Clients sign in at the first. Default: the issuer of this server.',
  ALCOVE_OIDC_AUDIENCE: 'Audience that a token must name. Default: alcove.',
  ALCOVE_OIDC_CLIENT_ID:
    'Client id with which the dashboard and `alcove login` sign people in. At an issuer of your own it is a public client with PKCE, and <public URL>/dashboard/ is its redirect URI. Default: alcove.',
  ALCOVE_OIDC_CLOCK_SKEW_SECONDS:
    'Accepted difference between our clock and that of an issuer, in seconds. Default: 30.',
  ALCOVE_PROXY_KEY:
    "Service key of the gate (formerly called the proxy) of control's machine. Default: none, gates show certificates.",
  ALCOVE_RUNNER_KEY:
    "Service key of the runner `local`, which is on control's machine. Default: none, there is no such runner.",
  ALCOVE_CERTIFICATES_DIR:
    'Directory with authority.pem, certificate.pem and key.pem of this program. With an https:// address of control, they replace its key. Default: none.',
  ALCOVE_GATE_ID:
    "Which gate this is, or which gate serves the sandboxes of this runner: the id of its machine's runner. Default: local, the gate of the server's own machine.",
  ALCOVE_GATE_ADDRESS:
    'Address and port at which the gate of this machine listens for gates of other machines. Default: none.',
  ALCOVE_GATE_PUBLIC_URL:
    'URL at which clients reach the gate of this machine directly. Default: none, they use the gate of the server.',
  ALCOVE_GATE_PEERS_LISTEN:
    'Address and port on which the gate listens for gates of other machines, such as 0.0.0.0:4604. It needs ALCOVE_CERTIFICATES_DIR. Default: none.',
  ALCOVE_CACHE_DIR: 'Directory that all servers of a host share, for built images. Default: /var/cache/alcove.',
  ALCOVE_VOLUME_GIB: 'Limit of each new volume in GiB (1-999999). Default: 10.',
  ALCOVE_VOLUMES_DIR:
    'Directory for new volumes, on a file system of its own that the operator mounts at this path on every host. Default: none, volumes are on the disk of one runner.',
  ALCOVE_IMAGES_DIR:
    'Directory of image files that callers may name: OCI layouts, OCI archives, and what `docker save` writes. Default: <data>/images.',
  ALCOVE_REGISTRIES:
    'Registries that images may come from, as host or host:port separated by commas, such as docker.io,ghcr.io. Default: any.',
  ALCOVE_REGISTRY_MIRRORS:
    'Mirrors that are used before a registry, such as docker.io=mirror.corp:5000/hub, separated by commas. The registry is used for images that the mirror lacks. Default: none.',
  ALCOVE_PRIVATE_REGISTRIES:
    'Registries that may be on this machine or at a private address. The runner reaches them through the network of the host. Default: none.',
  ALCOVE_OPEN_NETWORKS:
    "Private networks, or networks that the host is attached to, that sandboxes may reach, as IPv4 addresses or networks separated by commas, such as 10.1.0.0/16. The host's own addresses stay closed. Default: none.",
  ALCOVE_PLAIN_REGISTRIES:
    'Registries that the runner uses without TLS, at any address, as host:port separated by commas. Default: none.',
  ALCOVE_REGISTRY_AUTH:
    'File with credentials for registries, in the format of containers-auth.json(5). Pulls of every caller use it. Default: none.',
  ALCOVE_OVERCOMMIT:
    'How many times the cpu, memory and disk of the machine may be promised to sandboxes. Default: 64,8,8.',
  ALCOVE_DASHBOARD_URL:
    "Your own page for people, in place of this server's dashboard. Browsers are redirected to it after a sign-in at an organization's identity provider, successful or not. Default: <public URL>/dashboard/.",
  ALCOVE_DASHBOARD_DIR:
    'Directory of the built pages of the dashboard. `up` builds them. Default: none, the server has no pages.',
  ALCOVE_SSO_FOR_ALL:
    'true: every shared organization may use single sign-on. false: only those that an operator enables it for. Default: false.',
  ALCOVE_ALLOW_PRIVATE_TARGETS:
    'Private addresses and networks that identity providers and webhooks of organizations may have, separated by commas, such as 10.1.0.0/16. Default: none.',
  ALCOVE_WEBHOOK_PROVIDER: 'Sender of webhooks: embedded, svix or none. Default: embedded.',
  ALCOVE_SVIX_URL: 'Base URL of the Svix API, for ALCOVE_WEBHOOK_PROVIDER=svix. Default: https://api.svix.com.',
  ALCOVE_SVIX_TOKEN: 'Token for the Svix API. ALCOVE_WEBHOOK_PROVIDER=svix needs it.',
  ALCOVE_MOST_WARM:
    'Maximum number of warm (started ahead) sandboxes for each snapshot; demand decides how many there are. Default: 8. 0 disables them.',
  ALCOVE_RUNNER_SOCKET: 'Unix socket between gate and runner. Default: <data>/run/runner.sock.',
  ALCOVE_ARCHIVE_STORE:
    'Store for the disks of archived sandboxes: file:///absolute/path, or s3://bucket/prefix?endpoint=URL&region=NAME. Default: <data>/archive.',
  ALCOVE_ARCHIVE_S3_KEY: 'Access key of an S3 archive store.',
  ALCOVE_ARCHIVE_S3_SECRET: 'Secret of that access key.',
  ALCOVE_SMTP_URL:
    'Mail server: smtp://name:password@host:587, or smtps:// for TLS from the first byte. A password is only sent through TLS. Default: mail is written to the log.',
  ALCOVE_MAIL_FROM: 'Sender of mail, as alcove@example.com or Alcove <alcove@example.com>. ALCOVE_SMTP_URL needs it.',
  DATABASE_URL: 'URL of your own PostgreSQL database. Default: `up` starts a PostgreSQL of its own.',
  PATH: 'Directories in which system programs are searched.',
}
