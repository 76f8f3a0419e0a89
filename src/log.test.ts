import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createLog, createSecretMask, maskPatterns, secretValues } from './log.ts'

test('a hidden secret is masked anywhere in a line', () => {
  const lines: string[] = []
  const log = createLog('info', { write: (line) => lines.push(line) })
  log.hide('s3cret-s3cret')
  log.info({ token: 's3cret-s3cret', err: new Error('no s3cret-s3cret here') }, 'told s3cret-s3cret in passing')
  assert.equal(lines.length, 1)
  assert.ok(!lines[0]?.includes('s3cret-s3cret'))
  assert.match(lines[0] ?? '', /told \[hidden\] in passing/)
})

test('a value too short to be a secret is not masked', () => {
  const lines: string[] = []
  const log = createLog('info', { write: (line) => lines.push(line) })
  log.hide('is')
  log.info({}, 'this is fine')
  assert.match(lines[0] ?? '', /this is fine/)
})

const characters = (alphabet: string, length: number) =>
  fc.string({ unit: fc.constantFrom(...alphabet), minLength: length, maxLength: length })
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'
const UPPER = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'

/** Keys in the form of each service, and the part of each that is secret. */
const keys = fc.oneof(
  characters(LETTERS, 43).map((rest) => ({ text: `mol_${rest}`, secret: rest })),
  characters(LETTERS, 40).map((rest) => ({ text: `Authorization: Bearer ${rest}`, secret: rest })),
  characters(LETTERS, 48).map((rest) => ({ text: `sk-proj-${rest}`, secret: rest })),
  characters(LETTERS, 90).map((rest) => ({ text: `sk-ant-api03-${rest}`, secret: rest })),
  characters(LETTERS, 36).map((rest) => ({ text: `ghp_${rest}`, secret: rest })),
  characters(LETTERS, 24).map((rest) => ({ text: `xoxb-123456789012-${rest}`, secret: rest })),
  characters(UPPER, 16).map((rest) => ({ text: `AKIA${rest}`, secret: rest })),
  characters(LETTERS, 40).map((rest) => ({ text: `aws_secret_access_key=${rest}`, secret: rest })),
  characters(LETTERS, 38).map((rest) => ({ text: `MTAxMDEwMTAxMDEwMTAxMDEw.GabcdE.${rest}`, secret: rest })),
  characters(LETTERS, 35).map((rest) => ({ text: `123456789:${rest}`, secret: rest })),
  characters(LETTERS, 30).map((rest) => ({ text: `eyJhbGciOiJI.eyJzdWIiOiIx.${rest}`, secret: rest })),
  characters(LETTERS, 30).map((rest) => ({ text: `a-eyJhbGciOiJI.${rest}.0123456789abcdef`, secret: rest })),
  characters(LETTERS, 40).map((rest) => ({
    text: `-----BEGIN RSA PRIVATE KEY-----${rest}-----END RSA PRIVATE KEY-----`,
    secret: rest,
  })),
  characters(LETTERS, 12).map((rest) => ({ text: `postgres://molecule:${rest}@db:5432/x`, secret: rest })),
)
/** Text around a key that cannot become part of the key. */
const around = fc.constantFrom('', ' ', '\n', '"', ' (', ') ', '{"a":"', '"}', ' failed: ')

test('RT-7 a key is masked anywhere in a text', () => {
  const property = fc.property(around, keys, around, (before, { text, secret }, after) => {
    const masked = maskPatterns(`${before}${text}${after}`)
    assert.ok(!masked.includes(secret), masked)
    assert.ok(masked.includes('[hidden]'))
    assert.equal(maskPatterns(masked), masked)
  })
  fc.assert(property, { numRuns: 2000 })
})

test('RT-7 a registered secret is masked plain and JSON-escaped, the longer before the shorter', () => {
  const secret = fc.string({ minLength: 8, maxLength: 40 }).filter((text) => !'[hidden]'.includes(text))
  const property = fc.property(fc.array(secret, { minLength: 1, maxLength: 5 }), fc.string(), (secrets, text) => {
    const { hide, mask } = createSecretMask()
    for (const one of secrets) hide(one)
    for (const one of secrets) {
      const plain = mask(`${text} ${one} ${text}`)
      const left = plain.replaceAll('[hidden]', '')
      assert.ok(!left.includes(one), `${one} in ${plain}`)
      const line = mask(JSON.stringify({ said: `x ${one} y` }))
      assert.ok(!line.replaceAll('[hidden]', '').includes(JSON.stringify(one).slice(1, -1)), line)
    }
  })
  fc.assert(property, { numRuns: 500 })
  const { hide, mask } = createSecretMask()
  hide('beginning')
  hide('beginning-and-end')
  assert.equal(mask('beginning-and-end'), '[hidden]')
})

test('RT-7 a masked JSON line stays JSON, and ordinary text is not masked', () => {
  const property = fc.property(
    fc.array(
      fc.oneof(
        fc.string(),
        keys.map(({ text }) => text),
      ),
    ),
    (texts) => {
      JSON.parse(maskPatterns(JSON.stringify(texts)))
    },
  )
  fc.assert(property, { numRuns: 1000 })
  for (const text of [
    'task-list of the skunk works: 12:30 token count 4096',
    'command "cat" exited with code 3 (stderr: no such file /srv/ada/notes.txt)',
    'https://example.com:8080/a/b?q=1@2',
    '01M7FPH65GBDK8DY0646KAE617.1',
    'keyJhbGciOiJI.eyJ.0123456789abcdef, -----BEGIN RSA PRIVATE KEY----- and no end',
  ]) {
    assert.equal(maskPatterns(text), text)
  }
})

test('RT-7 variables with a secret name have secret values', () => {
  const environment = {
    OPENAI_API_KEY: 'one',
    GH_TOKEN: 'two',
    AWS_SECRET_ACCESS_KEY: 'three',
    PATH: '/bin',
    EMPTY_TOKEN: '',
  }
  assert.deepEqual(secretValues(environment), ['one', 'two', 'three'])
})
