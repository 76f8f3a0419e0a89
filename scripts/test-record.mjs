/**
 * Preloaded into each test process by `test-watch.mjs`, which passes the names of the test file and of the record in the
 * query of the URL. It keeps the record: the process, the test that began last, and as its modification time the last
 * moment at which the event loop ran. So the watcher can name a test that holds the loop and can no longer say anything.
 */
import { utimesSync, writeFileSync } from 'node:fs'
import { beforeEach } from 'node:test'
import { isMainThread } from 'node:worker_threads'

const HEARTBEAT_MS = 500

const query = new URL(import.meta.url).searchParams
const record = query.get('record')
// A worker thread or a forked process of a test inherits the preload and must not write the record of the test.
if (isMainThread && record !== null && process.argv[1] === query.get('file')) keepRecord(record)

/** @param {string} path */
function keepRecord(path) {
  const write = (/** @type {string} */ test) => writeFileSync(path, JSON.stringify({ pid: process.pid, test }))
  write('')
  beforeEach((context) => write(context.fullName))
  setInterval(() => utimesSync(path, new Date(), new Date()), HEARTBEAT_MS).unref()
  process.on('SIGHUP', () => {
    console.error(`open: ${process.getActiveResourcesInfo().join(', ')}`)
    process.exit(1)
  })
}
