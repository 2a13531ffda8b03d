// Checks whether sandboxes can have networks of their own. The check leaves the host's network unchanged.
import { readFile } from 'node:fs/promises'
import { runCommand } from '#src/kit/run-command.ts'
import { asRoot, type Probe, reasonOf } from './finding.ts'

const links = asRoot('network namespaces', async () => {
  const name = 'network namespaces'
  try {
    await runCommand(['unshare', '--net', 'ip', '-batch', '-'], {
      input: 'link add probe0 type veth peer name probe1\nlink set probe0 up\nroute add blackhole 10.0.0.0/20\n',
    })
    return { name, status: 'ok', found: 'veth links and routes work' }
  } catch (error) {
    return {
      name,
      status: 'missing',
      found: reasonOf(error),
      costs: 'sandboxes have no network',
      remedy: 'modprobe veth',
    }
  }
})

/** Firewall rules that the check loads, one of each kind that Alcove uses. */
const ruleset = `
table inet probe {
  map slots { type ifname . ipv4_addr : verdict; }
  set allowed { type ipv4_addr . ipv4_addr; flags interval; }
  chain open {
    fib daddr type != unicast drop
    ip saddr . ip daddr @allowed accept
  }
  chain leaving {
    type filter hook prerouting priority mangle; policy accept;
    iifname . ip saddr vmap @slots
  }
  chain arriving {
    type filter hook forward priority filter; policy accept;
    ct state established,related accept
    tcp flags syn tcp option maxseg size set rt mtu
  }
  chain nat {
    type nat hook postrouting priority srcnat; policy accept;
    ip saddr 10.0.0.0/20 masquerade
  }
}
add element inet probe slots { "probe0" . 10.0.0.2 : goto open }
add element inet probe allowed { 10.0.0.2 . 192.0.2.0/24 }
table arp probe {
  chain incoming {
    type filter hook input priority filter; policy accept;
    iifname "probe*" drop
  }
}
`

const rules = asRoot('nftables', async () => {
  const name = 'nftables'
  try {
    await runCommand(['unshare', '--net', 'nft', '-f', '-'], { input: ruleset })
    const version = /v[0-9.]+/.exec(await runCommand(['nft', '--version']))?.[0] ?? ''
    return { name, status: 'ok', found: `${version}; every kind of rule loads` }
  } catch (error) {
    return {
      name,
      status: 'missing',
      found: reasonOf(error),
      costs: 'sandboxes could reach the host and each other, so they do not start',
      remedy: 'apt-get install nftables; modprobe nf_tables nft_masq nft_fib_inet',
    }
  }
})

const forwarding: Probe = {
  name: 'packet forwarding',
  run: async () => {
    const isOn = (await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8')).trim() === '1'
    const found = isOn ? 'on' : 'off; the runner switches it on, and uninstalling switches it off again'
    return { name: 'packet forwarding', status: 'ok', found }
  },
}

export const networkProbes: readonly Probe[] = [links, rules, forwarding]
