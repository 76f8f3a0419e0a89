import assert from 'node:assert/strict'
import test from 'node:test'
import { createHostRule } from './host-rule.ts'

test('the bound host is allowed by its own name, with any port', () => {
  const rule = createHostRule('molecule.lan')
  for (const host of ['molecule.lan', 'Molecule.LAN:8080', 'localhost:1', '127.0.0.1', '[::1]:8080']) {
    assert.ok(rule(host), host)
  }
  for (const host of [
    'lan',
    'x.molecule.lan',
    '10.0.0.5',
    '[fe80::1]',
    undefined,
    'molecule.lan:x',
    'a@molecule.lan',
  ]) {
    assert.ok(!rule(host), String(host))
  }
})

test('an IPv6 host is compared in brackets', () => {
  const rule = createHostRule('fd00::1')
  assert.ok(rule('[fd00::1]:8080'))
  assert.ok(!rule('[fd00::2]:8080'))
})

test('bound to every address, any address is allowed and no foreign name', () => {
  for (const bound of ['0.0.0.0', '::']) {
    const rule = createHostRule(bound)
    for (const host of ['192.168.1.5:8080', '[fd00::1]:8080', 'localhost']) assert.ok(rule(host), host)
    for (const host of ['evil.example', '192.168.1.5.evil.example', '999.1.1.1']) assert.ok(!rule(host), host)
  }
})

test('without a Host header, or with a name that only contains an address, nothing is allowed', () => {
  const rules = ['localhost', '~', '10.0.0.5', '::'].map((host) => createHostRule(host))
  for (const rule of rules)
    for (const host of [
      undefined,
      '',
      ':80',
      '[fd00::1',
      '10.0.0.5:123456',
      '10.0.0.5.test',
      '[10.0.0.5.test]',
      '[zz]',
    ])
      assert.equal(rule(host), false, String(host))
  const [named, , numbered, every] = rules
  assert.deepEqual([named?.('10.0.0.5'), numbered?.('10.0.0.5:80'), every?.('10.0.0.5:80')], [false, true, true])
})
