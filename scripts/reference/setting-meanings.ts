import { rateMeaning } from '#src/kit/rate.ts'

const rate = `Format: ${rateMeaning}. Default: no limit.`

/** Meanings of the settings whose error messages do not contain a meaning. */
export const meanings: Record<string, string> = {
  ALCOVE_RATE_LIMIT_ANONYMOUS: `Limit of calls to endpoints that need no credential, for each client address. ${rate}`,
  ALCOVE_RATE_LIMIT_FAILED_AUTH: `Limit of calls that fail with 401, because their credential is wrong or missing, for each client address. ${rate}`,
  ALCOVE_RATE_LIMIT_AUTHENTICATED: `Limit of calls with a credential, for each organization. Calls with a limit of their own, such as creates, are not included. ${rate}`,
  ALCOVE_RATE_LIMIT_SANDBOX_CREATE: `Limit of calls that create or fork a sandbox, for each organization. ${rate}`,
  ALCOVE_RATE_LIMIT_SANDBOX_LIFECYCLE: `Limit of calls that start, stop, pause, resize, archive, recover or delete a sandbox, for each organization. ${rate}`,
  ALCOVE_TRUSTED_PROXIES:
    'Number of reverse proxies in front of control (0-9). If it is 1 or more, control reads the client address from the header X-Forwarded-For. Default: 0, the header is ignored.',
  ALCOVE_PUBLIC_URL:
    'Public base URL of the API, if a reverse proxy is in front of it, such as https://alcove.example.com. Set it together with ALCOVE_PROXY_URL.',
  ALCOVE_PROXY_URL:
    'Public base URL of the gate, which serves toolboxes and previews, such as https://sandboxes.example.net. The former name of the gate is proxy. Previews use subdomains of this URL. So a reverse proxy in front of the gate must also forward *.sandboxes.example.net.',
  ALCOVE_LOG_LEVEL: 'Lowest level that is logged: trace, debug, info, warn, error, fatal or silent. Default: info.',
  ALCOVE_FIRST_KEY:
    'API key of the first administrator. Control creates this user at its start, if there are no users yet. A new value replaces the key of this user. Default: none.',
  ALCOVE_OLDER_ENCRYPTION_KEYS:
    'Former values of ALCOVE_ENCRYPTION_KEY, separated by commas. Control decrypts older secrets with them, and encrypts new secrets with ALCOVE_ENCRYPTION_KEY. Default: none.',
  ALCOVE_AUDIT_DAYS: 'Number of days for which the audit log is kept (1-9999). Default: 90.',
  ALCOVE_LOST_AFTER_MINUTES:
    'Minutes without a heartbeat after which a host is lost. Its sandboxes that have a copy in the archive store can then start on other hosts. Default: 10. 0: a host is lost only after `alcove runner lost`.',
  ALCOVE_METER_HOURS: 'Number of hours for which the usage samples of sandboxes are kept (1-999). Default: 48.',
  ALCOVE_EXECUTE_TIMEOUT_SECONDS:
    'Timeout in seconds of the toolbox call process/execute, if the call sets none. Does not apply to calls with the header X-Daytona-SDK-Version. Default: 10. 0: no timeout.',
  ALCOVE_DISK_MIB_PER_SECOND:
    'Limit of disk reads, and of disk writes, of each sandbox in MiB per second. Default: 200. 0: no limit. `alcove doctor` reports whether the host can enforce it.',
  ALCOVE_SUDO:
    'true: the default user of a sandbox can run commands as root with sudo. false: a sandbox has no sudo after its next start. Default: true.',
  ALCOVE_METER_SECONDS: 'Seconds between two usage samples of a sandbox (0-3600). Default: 60. 0 disables metering.',
  ALCOVE_SSH_LISTEN:
    'Address and port on which the SSH gateway listens, such as 0.0.0.0:2222. Default: the host of `up --host`, and the port of `up --port` plus 2. off: there is no SSH access.',
  ALCOVE_HOSTS_LISTEN:
    'host:port on which control listens for runners and gates of other machines, such as 198.51.100.1:4603. Default: none, no other machine can join.',
  ALCOVE_SSH_URL:
    'URL at which clients reach the SSH gateway, such as ssh://alcove.example.com:2222. Default: the host of the public URL of the API, and the port on which the gateway listens.',
  ALCOVE_SSH_GATEWAY_KEY:
    'Key with which the SSH gateway authenticates to control. Default: none, there is no SSH access.',
  ALCOVE_SSH_PUBLIC_HOST_KEY:
    'Public host key of the SSH gateway. Control returns it to clients, so that they can verify the gateway. Default: none.',
  ALCOVE_COLLECTOR_KEY:
    'Key of a telemetry collector. With this key, the collector reads from control the address at which each organization wants its telemetry. 32 characters or more. Default: none.',
  ALCOVE_DEFAULT_REGION_MAY_CHANGE:
    'true: an organization can change its default region. false: it can choose a default region only once. Default: false.',
  ALCOVE_OIDC_ISSUER:
    'URLs of the OpenID issuers whose tokens control accepts, separated by commas. Clients sign in at the first one. Default: the issuer of this server.',
  ALCOVE_OIDC_AUDIENCE: 'Audience (aud) that a token of an OpenID issuer must have. Default: alcove.',
  ALCOVE_OIDC_CLIENT_ID:
    'OpenID client id of the dashboard and of `alcove login`. At your own issuer, register this id as a public client with PKCE, with the redirect URI <public URL>/dashboard/. Default: alcove.',
  ALCOVE_OIDC_CLOCK_SKEW_SECONDS:
    'Largest accepted difference between the clock of this server and the clock of an issuer, in seconds (0-999). Default: 30.',
  ALCOVE_PROXY_KEY:
    "Key with which the gate (formerly called the proxy) of control's machine authenticates to control. Default: none, gates authenticate with certificates.",
  ALCOVE_RUNNER_KEY:
    "Key with which the runner `local`, on control's machine, authenticates to control. Default: none, there is no such runner.",
  ALCOVE_CERTIFICATES_DIR:
    'Directory with authority.pem, certificate.pem and key.pem of a gate or runner. If the URL of control is https, the gate or runner shows this certificate to control. It then needs neither ALCOVE_PROXY_KEY nor ALCOVE_RUNNER_KEY. Default: none.',
  ALCOVE_GATE_ID:
    "Id of the gate on this machine, equal to the id of the runner on this machine. Default: local, the id of both on control's machine.",
  ALCOVE_GATE_ADDRESS: 'host:port at which gates of other machines reach the gate of this machine. Default: none.',
  ALCOVE_GATE_PUBLIC_URL:
    'URL at which clients reach the gate of this machine directly. Default: none, clients use the gate on control’s machine.',
  ALCOVE_GATE_PEERS_LISTEN:
    'host:port on which the gate listens for gates of other machines, such as 0.0.0.0:4604. It requires ALCOVE_CERTIFICATES_DIR. Default: none.',
  ALCOVE_CACHE_DIR:
    'Directory for files that all Alcove servers of a machine share, such as built images. Default: /var/cache/alcove.',
  ALCOVE_VOLUME_GIB: 'Maximum size of each new volume in GiB (1-999999). Default: 10.',
  ALCOVE_VOLUMES_DIR:
    'Directory for new volumes, on a file system that all hosts share and that the operator mounts at this path on each of them. Default: none, each volume is on the disk of one runner.',
  ALCOVE_IMAGES_DIR:
    'Directory of image files that callers can use by their file name: OCI layouts, OCI archives, and files that `docker save` writes. Default: <data>/images.',
  ALCOVE_REGISTRIES:
    'Registries from which images can be pulled, as host or host:port separated by commas, such as docker.io,ghcr.io. Default: all registries.',
  ALCOVE_REGISTRY_MIRRORS:
    'Mirrors of registries, as registry=mirror separated by commas, such as docker.io=mirror.corp:5000/hub. An image that the mirror lacks is pulled from the registry. Default: none.',
  ALCOVE_PRIVATE_REGISTRIES:
    'Image registries that may run on this machine or have a private address. Written as host or host:port, separated by commas. The runner reaches them through the network of the host. Default: none.',
  ALCOVE_OPEN_NETWORKS:
    "Private networks, or networks of the host, that sandboxes may reach all the same: IPv4 addresses or networks separated by commas, such as 10.1.0.0/16. Sandboxes can never reach the host's own addresses. Default: none.",
  ALCOVE_PLAIN_REGISTRIES:
    'Image registries to which the runner connects without TLS, even at private addresses. Written as host:port, separated by commas. Default: none.',
  ALCOVE_REGISTRY_AUTH:
    'File with credentials for registries, in the format of containers-auth.json(5). The runner uses them for the pulls of every organization. Default: none.',
  ALCOVE_OVERCOMMIT:
    'Three numbers separated by commas: how many times the CPUs, the memory and the disk of a machine can be allocated to sandboxes. Default: 64,8,8.',
  ALCOVE_DASHBOARD_URL:
    "URL of your own web page that replaces this server's dashboard. After a sign-in at an organization's identity provider, the browser is redirected to it. Default: <public URL>/dashboard/.",
  ALCOVE_DASHBOARD_DIR:
    'Directory with the built files of the dashboard. `up` builds them and sets this variable. Default: none, control serves no dashboard.',
  ALCOVE_SSO_FOR_ALL:
    'true: every organization that is not personal can use single sign-on. false: only organizations for which an operator enabled it. Default: false.',
  ALCOVE_ALLOW_PRIVATE_TARGETS:
    'Private addresses and networks to which control may connect for the identity providers and webhooks of organizations. Separated by commas, such as 10.1.0.0/16. Default: none.',
  ALCOVE_WEBHOOK_PROVIDER:
    'Program that sends webhooks. embedded: control itself. svix: the Svix API. none: no webhooks are sent. Default: embedded.',
  ALCOVE_SVIX_URL: 'Base URL of the Svix API, if ALCOVE_WEBHOOK_PROVIDER is svix. Default: https://api.svix.com.',
  ALCOVE_SVIX_TOKEN: 'Token for the Svix API. Required if ALCOVE_WEBHOOK_PROVIDER is svix.',
  ALCOVE_MOST_WARM:
    'Maximum number of warm (started ahead) sandboxes for each snapshot. Control adapts the number to the demand, up to this maximum. Default: 8. 0: there are no warm sandboxes.',
  ALCOVE_RUNNER_SOCKET:
    'Path of the Unix socket on which the runner listens for the gate. Default: <data>/run/runner.sock.',
  ALCOVE_ARCHIVE_STORE:
    'Object store for the disks of archived sandboxes: file:///absolute/path, or s3://bucket/prefix?endpoint=URL&region=NAME. Default: the directory <data>/archive.',
  ALCOVE_ARCHIVE_S3_KEY: 'Access key id for ALCOVE_ARCHIVE_STORE, if it is an S3 store.',
  ALCOVE_ARCHIVE_S3_SECRET: 'Secret access key for ALCOVE_ARCHIVE_STORE, if it is an S3 store.',
  ALCOVE_SMTP_URL:
    'URL of the mail server: smtp://name:password@host:587, or smtps:// for TLS from the first byte. A password is only sent through TLS. Default: none, mail is written to the log.',
  ALCOVE_MAIL_FROM:
    'Sender address of mail, such as alcove@example.com or Alcove <alcove@example.com>. Required if ALCOVE_SMTP_URL is set.',
  DATABASE_URL: 'URL of your own PostgreSQL database. Default: none, `up` starts its own PostgreSQL.',
  PATH: 'Directories in which programs of the system are searched, separated by colons.',
}
