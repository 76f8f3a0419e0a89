// @ts-nocheck This runs in a browser; the project's types are Node's.
/**
 * The script of the page: exchanges the code in the link for a session, then shows the workspaces and refreshes them.
 * Everything that comes from the platform is inserted as text, never as markup.
 */

const REFRESH_MS = 3000

const element = (id) => document.getElementById(id)

let timer

element('logout').addEventListener('click', async () => {
  await fetch('/logout', { method: 'POST' })
  showLoggedOut()
})
document.addEventListener('visibilitychange', () => {
  if (!document.hidden && timer !== undefined) void refresh()
})
await start()

async function start() {
  const code = location.hash.slice(1)
  // Removed from the address bar and the history first: the code must not stay there, whether or not it works.
  if (code) history.replaceState(null, '', location.pathname)
  const problem = code ? await login(code) : undefined
  // A used link is no problem in a browser that is already logged in, so the list decides.
  await refresh()
  if (problem && element('logged-in').hidden) showTrouble(problem)
}

async function login(code) {
  try {
    const answer = await fetch('/login', { method: 'POST', body: JSON.stringify({ code }) })
    if (answer.ok) return undefined
    const { error } = await answer.json()
    return `Login failed: ${error.message}.`
  } catch {
    return 'The platform cannot be reached.'
  }
}

async function refresh() {
  clearTimeout(timer)
  try {
    const workspaces = await readWorkspaces()
    if (workspaces === undefined) return showLoggedOut()
    showWorkspaces(workspaces)
  } catch {
    showTrouble('The platform cannot be reached. This list may be out of date. Trying again.')
  }
  timer = setTimeout(refresh, REFRESH_MS)
}

/** All pages of the list; undefined when the browser is not logged in. */
async function readWorkspaces() {
  const workspaces = []
  for (let after = ''; after !== undefined; ) {
    const answer = await fetch(`/workspaces?limit=1000&after=${encodeURIComponent(after)}`)
    if (answer.status === 401) return undefined
    if (!answer.ok) throw new Error(`answer ${answer.status}`)
    const page = await answer.json()
    workspaces.push(...page.workspaces)
    after = page.next
  }
  return workspaces
}

function showLoggedOut() {
  clearTimeout(timer)
  timer = undefined
  element('trouble').hidden = true
  element('logged-in').hidden = true
  element('logged-out').hidden = false
  element('logout').hidden = true
  element('count').textContent = ''
  element('workspaces').replaceChildren()
}

function showTrouble(text) {
  element('trouble').textContent = text
  element('trouble').hidden = false
}

function showWorkspaces(workspaces) {
  element('trouble').hidden = true
  element('logged-out').hidden = true
  element('logged-in').hidden = false
  element('logout').hidden = false
  element('none').hidden = workspaces.length > 0
  element('count').textContent = workspaces.length === 1 ? '1 workspace' : `${workspaces.length} workspaces`
  element('workspaces').replaceChildren(...workspaces.map(card))
}

function card(workspace) {
  const item = make('li', 'workspace')
  item.dataset.status = workspace.status
  item.dataset.id = workspace.id
  if (workspace.running > 0) item.dataset.working = ''
  const top = make('div', 'top')
  top.append(make('span', 'dot'), make('span', 'name', workspace.name), make('span', 'runtime', workspace.runtime))
  item.append(top)
  if (workspace.role) item.append(make('p', 'role', workspace.role))
  if (workspace.status_reason) item.append(make('p', 'why', workspace.status_reason))
  item.append(make('p', 'foot', `${workspace.status} · ${workspace.running} running · ${workspace.queue_depth} queued`))
  return item
}

function make(tag, className, text) {
  const made = document.createElement(tag)
  made.className = className
  if (text !== undefined) made.textContent = text
  return made
}
