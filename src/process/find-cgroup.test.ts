import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseOwnCgroups } from './find-cgroup.ts'

const mount = (root: string, point: string, type = 'cgroup2') =>
  `31 23 0:28 ${root} ${point} rw,nosuid,relatime shared:9 master:1 - ${type} none rw,nsdelegate`

const cases: readonly { title: string; mounts: string[]; membership: string; found: string[] }[] = [
  {
    title: 'a service of systemd',
    mounts: ['21 1 0:5 / /proc rw - proc proc rw', mount('/', '/sys/fs/cgroup')],
    membership: '0::/system.slice/molecule.service\n',
    found: ['/sys/fs/cgroup/system.slice/molecule.service'],
  },
  {
    title: 'version 1 beside version 2, and version 2 mounted twice',
    mounts: [mount('/', '/sys/fs/cgroup/cpu', 'cgroup'), mount('/', '/sys/fs/cgroup/unified'), mount('/', '/tmp/x')],
    membership: '9:name=systemd:/other\n4:memory:/a/b\n0::/\n',
    found: ['/sys/fs/cgroup/unified', '/tmp/x'],
  },
  {
    title: 'a mount that shows a part of the hierarchy',
    mounts: [mount('/docker/abc', '/sys/fs/cgroup'), mount('/docker/abcd', '/other'), mount('/docker', '/more')],
    membership: '0::/docker/abc/agent\n',
    found: ['/sys/fs/cgroup/agent', '/more/abc/agent'],
  },
  {
    title: 'the mount shows exactly our cgroup, at a path with a space',
    mounts: [mount('/docker/abc', '/mnt/my\\040groups')],
    membership: '0::/docker/abc\n',
    found: ['/mnt/my groups'],
  },
  { title: 'outside of our namespace', mounts: [mount('/', '/sys/fs/cgroup')], membership: '0::/../up\n', found: [] },
  { title: 'version 1 only', mounts: [mount('/', '/c', 'cgroup')], membership: '4:memory:/a\n', found: [] },
]

for (const { title, mounts, membership, found } of cases) {
  test(`our own cgroup: ${title}`, () => {
    assert.deepEqual(parseOwnCgroups(`${mounts.join('\n')}\n`, membership), found)
  })
}
