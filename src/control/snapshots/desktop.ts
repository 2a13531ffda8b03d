// The snapshot `desktop`, which all organizations see: the default image with a graphical desktop for computer use. An
// organization's first sandbox from this snapshot builds the image. Its later sandboxes use the built image.
import type { Definition } from '#src/wire/runner-link.ts'
import type { Snapshot } from './store.ts'

/**
 * `xterm` is the terminal. `gir1.2-gtk-3.0` lets Python programs open windows. `python3-gi` lets them read which windows
 * and controls are on the screen. Without `dbus-x11`, apt would install systemd for the session bus.
 */
const packages = [
  ...['xvfb', 'openbox', 'xterm', 'x11vnc', 'websockify', 'xdotool', 'wmctrl', 'scrot', 'ffmpeg'],
  ...['dbus-x11', 'at-spi2-core', 'python3-gi', 'gir1.2-gtk-3.0'],
]

// Debian's package of noVNC depends on 40 packages of OpenStack, so only the files of noVNC itself are unpacked.
// `--force-unsafe-io`: dpkg does not flush each file to disk. An interrupted build is discarded anyway.
const dockerfile = `FROM default
USER root
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \\
    --option Dpkg::Options::=--force-unsafe-io ${packages.join(' ')} \\
  && cd /tmp && apt-get download novnc && dpkg-deb --extract novnc_*.deb / && rm novnc_*.deb \\
  && apt-get clean && rm -rf /var/lib/apt/lists/*
ENV DISPLAY=:0
USER daytona
`

export const desktop = { name: 'desktop', image: 'desktop', dockerfile, cpu: 2, memoryGiB: 2, diskGiB: 5 } as const

/** Returns whether the snapshot is a definition whose image each organization builds for itself. */
export const isBuiltPerOrganization = ({
  general,
  dockerfile: of,
}: Pick<Snapshot, 'general' | 'dockerfile'>): boolean => general && of !== null

/** Returns the definition of a snapshot whose image each organization builds; undefined for any other snapshot. */
export const definitionOf = (snapshot: Pick<Snapshot, 'general' | 'dockerfile'>): Definition | undefined =>
  isBuiltPerOrganization(snapshot) ? { kind: 'definition', dockerfile: snapshot.dockerfile as string } : undefined
