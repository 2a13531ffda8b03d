import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { distributionIn, sourcesFrom } from './apt-sources.ts'

const debian = { id: 'debian', codename: 'bookworm' }
const ubuntu = { id: 'ubuntu', codename: 'noble' }

suite('the mirror and the release of the default image', () => {
  test('the default image is the host’s release of Debian or Ubuntu; on any other host it is a Debian', () => {
    assert.deepEqual(distributionIn('NAME="x"\nVERSION_CODENAME=trixie\nID=debian\n'), {
      id: 'debian',
      codename: 'trixie',
    })
    assert.deepEqual(distributionIn('ID=ubuntu\nID_LIKE=debian\nVERSION_CODENAME=noble\n'), ubuntu)
    assert.equal(distributionIn('ID=fedora\nVERSION_CODENAME=""\n').id, 'debian')
    assert.equal(distributionIn('').id, 'debian')
  })

  test('the default image’s apt sources are those in the host’s sources.list, each once', () => {
    const text = [
      'deb http://mirror.example/debian bookworm main contrib # near',
      'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg arch=amd64] http://mirror.example/debian bookworm-updates main',
      'deb http://mirror.example/debian bookworm main',
      '# deb http://old.example/debian bookworm main',
      'deb-src http://mirror.example/debian bookworm main',
    ].join('\n')
    assert.deepEqual(sourcesFrom(debian, [['/etc/apt/sources.list', text]]), {
      suite: 'bookworm',
      lines: [
        'deb http://mirror.example/debian bookworm main',
        'deb http://mirror.example/debian bookworm-updates main',
      ],
    })
  })

  test('deb822 files of apt are read, with several suites and folded lines; disabled stanzas are skipped', () => {
    const text = [
      'Types: deb deb-src',
      '# a comment',
      'URIs: http://deb.debian.org/debian',
      'Suites: bookworm\n bookworm-updates',
      'Components: main',
      'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg',
      '',
      'Types: deb\nURIs: http://off.example/\nSuites: bookworm\nComponents: main\nEnabled: no',
    ].join('\n')
    assert.deepEqual(sourcesFrom(debian, [['/etc/apt/sources.list.d/debian.sources', text]]).lines, [
      'deb http://deb.debian.org/debian bookworm main',
      'deb http://deb.debian.org/debian bookworm-updates main',
    ])
  })

  test('the host’s apt sources of other vendors are ignored, even if they are for the same Debian suite', () => {
    const text = 'deb [signed-by=/etc/apt/keyrings/vendor.gpg] https://vendor.example/debian bookworm main\n'
    assert.ok(!sourcesFrom(debian, [['x.list', text]]).lines.some((line) => line.includes('vendor')))
  })

  test('packages come from deb.debian.org or archive.ubuntu.com if the host has no apt sources', () => {
    assert.deepEqual(sourcesFrom(debian, []).lines[0], 'deb http://deb.debian.org/debian bookworm main')
    assert.deepEqual(sourcesFrom(ubuntu, []).lines[0], 'deb http://archive.ubuntu.com/ubuntu noble main universe')
  })
})
