/** Text of `alcove control --help` below the options. */
export const controlHelp = `
Settings are environment variables (docs/reference/settings.md, "control"). You need:
  DATABASE_URL            PostgreSQL, such as postgres://user:password@host:5432/database
  ALCOVE_ENCRYPTION_KEY   32 bytes as base64; the same for every control of a server
  ALCOVE_PUBLIC_URL       where clients reach control, such as https://alcove.example.com
  ALCOVE_PROXY_URL        where clients reach a gate, such as https://sandboxes.example.com
Often needed:
  ALCOVE_LISTEN           host:port of the API. Default: 127.0.0.1:4600
  ALCOVE_HOSTS_LISTEN     host:port for hosts that join ("alcove runner --join https://…"), usually port 4603
  ALCOVE_FIRST_KEY        key of the first administrator, which control makes in an empty database
This machine runs no sandboxes. SIGTERM ends control within three seconds.
`
