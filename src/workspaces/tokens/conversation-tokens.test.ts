import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import fc from 'fast-check'
import { ulid, workspaceId } from '../../ids.ts'
import { maskPatterns } from '../../log.ts'
import { CONVERSATION_TOKEN_PERIOD_MS, createConversationTokens } from './conversation-tokens.ts'

const NOW_MS = 1000 * CONVERSATION_TOKEN_PERIOD_MS
const RUN = ulid()
const GRANT = { generation: 3, isForBridge: false }

const subject = () => ({ workspaceId: workspaceId(), conversationId: ulid() })
const tokensOf = (secret: Buffer, nowMs = () => NOW_MS) => createConversationTokens({ secret, run: RUN, nowMs })

test('RT-12 a conversation token is read back as its claims by every holder of the same secret', () => {
  const secret = randomBytes(32)
  const one = subject()
  const token = tokensOf(secret).issue(one, GRANT)
  const expiresAtMs = NOW_MS + 2 * CONVERSATION_TOKEN_PERIOD_MS
  const claims = { ...one, generation: 3, expiresAtMs, run: RUN, text: token.slice(0, -43) }
  assert.deepEqual(tokensOf(secret).read(token), claims)
  const forBridge = tokensOf(secret).issue(one, { generation: 0, isForBridge: true })
  assert.equal(tokensOf(secret).read(forBridge)?.run, undefined)
  assert.equal(tokensOf(randomBytes(32)).read(token), undefined)
  assert.equal(maskPatterns(`it is ${token}.`), 'it is [hidden].')
})

test('RT-12 a conversation keeps its token, however many others are issued meanwhile', () => {
  const tokens = tokensOf(randomBytes(32))
  const subjects = Array.from({ length: 1500 }, subject)
  const issue = (one: ReturnType<typeof subject>) => tokens.issue(one, GRANT)
  const issued = subjects.map(issue)
  assert.deepEqual(subjects.map(issue), issued)
  assert.equal(new Set(issued).size, subjects.length)
})

test('RT-12 within 12 hours a conversation keeps its token, and a new one is issued 12 hours before the old one ends', () => {
  let nowMs = NOW_MS
  const tokens = tokensOf(randomBytes(32), () => nowMs)
  const one = subject()
  const first = tokens.issue(one, GRANT)
  nowMs += 12 * 3600_000 - 1
  assert.equal(tokens.issue(one, GRANT), first)
  assert.notEqual(tokens.issue(one, { ...GRANT, generation: 4 }), first)
  assert.notEqual(tokens.issue(one, { ...GRANT, isForBridge: true }), first)
  nowMs += 1
  assert.notEqual(tokens.issue(one, GRANT), first)
  assert.equal((tokens.read(first)?.expiresAtMs ?? 0) - nowMs, 12 * 3600_000)
})

test('RT-12 no other text is a token: not an altered one, not one with the ids of another subject', () => {
  const tokens = tokensOf(randomBytes(32))
  const [one, other] = [subject(), subject()]
  const token = tokens.issue(one, GRANT)
  assert.equal(tokens.read(token.replace(one.workspaceId, other.workspaceId)), undefined)
  assert.equal(tokens.read(token.replace(one.conversationId, other.conversationId)), undefined)
  const altered = fc.tuple(fc.nat(token.length - 1), fc.stringMatching(/^[\w-]$/))
  fc.assert(
    fc.property(altered, ([at, letter]) => {
      fc.pre(token[at] !== letter)
      assert.equal(tokens.read(token.slice(0, at) + letter + token.slice(at + 1)), undefined)
    }),
  )
  fc.assert(fc.property(fc.string(), (text) => assert.equal(tokens.read(text), undefined)))
})
