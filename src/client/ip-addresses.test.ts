import assert from 'node:assert/strict'
import { test } from 'node:test'

/** Loaded inside of each test, so that a range that cannot be read fails a test and not only the file. */
const load = () => import('./ip-addresses.ts')

test('each internal range has its reason from its first address to its last', async () => {
  const { nonPublicReason } = await load()
  const carrier = 'an internal address of a carrier or cloud'
  const multicast = 'a multicast or broadcast address'
  const linkLocal = 'a link-local address, where clouds keep their metadata'
  const ranges: [reason: string, first: string, last: string][] = [
    ['an unspecified address', '0.0.0.0', '0.255.255.255'],
    ['a loopback address', '127.0.0.0', '127.255.255.255'],
    [linkLocal, '169.254.0.0', '169.254.255.255'],
    [linkLocal, 'fe80::', 'febf:ffff::'],
    ['a private address', '10.0.0.0', '10.255.255.255'],
    ['a private address', '172.16.0.0', '172.31.255.255'],
    ['a private address', '192.168.0.0', '192.168.255.255'],
    ['a private address', 'fc00::', 'fdff:ffff::'],
    ['a private address', 'fec0::', 'feff:ffff::'],
    [carrier, '100.64.0.0', '100.127.255.255'],
    [carrier, '168.63.129.16', '168.63.129.16'],
    [carrier, '192.0.0.0', '192.0.0.255'],
    [multicast, '224.0.0.0', '239.255.255.255'],
    [multicast, '255.255.255.255', '255.255.255.255'],
    [multicast, 'ff00::', 'ffff::'],
    ['a reserved address', '240.0.0.0', '255.255.255.254'],
    ['a reserved address', '192.88.99.0', '192.88.99.255'],
    ['a reserved address', '198.18.0.0', '198.19.255.255'],
    ['a reserved address', '198.51.100.0', '198.51.100.255'],
    ['a reserved address', '192.175.48.0', '192.31.196.255'],
    ['a reserved address', '192.52.193.0', '192.52.193.255'],
    ['a reserved address', '2620:4f:8000::', '2620:4f:8000:ffff::'],
    ['a reserved address', '::8.8.8.8', '::808:808'],
    ['a reserved address', '2001::', '2001:1ff:ffff::'],
    ['a reserved address', '2002::', '2002:ffff::'],
    ['a reserved address', '3fff::', '3fff:fff:ffff::'],
    ['a reserved address', '1fff::', '4000::'],
  ]
  for (const [reason, first, last] of ranges)
    assert.deepEqual([nonPublicReason(first), nonPublicReason(last)], [reason, reason], first)
  assert.equal(nonPublicReason('::'), 'an unspecified address')
  assert.equal(nonPublicReason('::1'), 'a loopback address')
  assert.equal(nonPublicReason('1.2.3'), 'not an address')
})

test('the neighbours of the internal ranges are public, also mapped into IPv6 and with a zone', async () => {
  const { nonPublicReason } = await load()
  const outside = [
    ...['1.0.0.0', '9.255.255.255', '11.0.0.0', '126.255.255.255', '128.0.0.0', '169.253.255.255', '169.255.0.0'],
    ...['172.15.255.255', '172.32.0.0', '192.167.255.255', '192.169.0.0', '100.63.255.255', '100.128.0.0'],
    ...['168.63.129.15', '168.63.129.17', '192.0.1.0', '223.255.255.255', '198.17.255.255', '198.20.0.0'],
    ...['2000::', '2001:200::', '2003::', '3ffe::', '2606:4700::1111', '2606:4700::1111%eth0'],
    ...['::ffff:8.8.8.8', '::ffff:808:808', '0:0:0:0:0:FFFF:8.8.8.8'],
  ]
  for (const address of outside) assert.equal(nonPublicReason(address), undefined, address)
})

test('an allow list ignores case, spaces, empty entries and the dot at the end of a name', async () => {
  const { createAllowList } = await load()
  const list = createAllowList([
    ' Hook.Test ',
    '',
    '  ',
    '10.0.0.0/8',
    'fd00::/64',
    '::1/128',
    '1.2.3.4/32',
    '0.0.0.0/0',
  ])
  const names = ['hook.test', 'HOOK.TEST', 'hook.test.', 'other.test', 'hook.test~', '']
  assert.deepEqual(names.map(list.allowsName), [true, true, true, false, false, false])
  const narrow = createAllowList(['10.0.0.0/8', 'fd00::/64', '::1/128', '1.2.3.4/32'])
  for (const address of ['10.255.0.1', 'fd00::ffff', '::1', '1.2.3.4'])
    assert.ok(narrow.allowsAddress(address), address)
  for (const address of ['11.0.0.1', 'fd00:0:0:1::', '::2', '1.2.3.5'])
    assert.ok(!narrow.allowsAddress(address), address)
})

test('a range of one family has no address of the other, but ::/0 has all', async () => {
  const { createAddressRanges } = await load()
  const all = ['10.0.0.1', '::ffff:10.0.0.1', '10::1', 'fe80::1%en0.1']
  const inside = (range: string) => all.map(createAddressRanges([range]).includes)
  assert.deepEqual(inside('::/0'), [true, true, true, true])
  assert.deepEqual(inside('0.0.0.0/0'), [true, true, false, false])
  assert.deepEqual(inside('::ffff:10.0.0.0/104'), [true, true, false, false])
  assert.deepEqual(inside('10::/16'), [false, false, true, false])
  assert.ok(!createAddressRanges(['0.0.0.0/0']).includes('0177.0.0.1'), 'octal is no address')
})

test('an entry that is neither a name nor a range is refused by its own text', async () => {
  const { createAllowList } = await load()
  const wrong = ['10.0.0', '1.2.3.4/33', '1.2.3.4/x', '1.2.3.4/-1', '1.2.3.4/', '::1/129', 'a b', '-a', 'a..b', 'a/8']
  for (const entry of wrong)
    assert.throws(() => createAllowList([entry.toUpperCase()]), {
      code: 'bad_config',
      message: `allow-outbound: "${entry}" is neither a host name nor a range`,
    })
  assert.deepEqual(['a', '_a.b-c', '1a'].map(createAllowList(['a', '_a.b-c', '1a']).allowsName), [true, true, true])
})
