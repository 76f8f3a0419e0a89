/** What a rule covers: exact subjects, plain commands after a prefix, files below a folder, and nothing else. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { normalize } from 'node:path'
import { test } from 'node:test'
import fc from 'fast-check'
import { choiceOf, coversUse, ruleChoices } from './rule-pattern.ts'

const bash = (subject: string) => ({ tool: 'Bash', subject })
const npmTest = { tool: 'Bash', scope: 'prefix', pattern: 'npm test *' } as const
const edit = (path: string) => ({ tool: 'Edit', subject: JSON.stringify({ file_path: path, old_string: 'a' }) })

test('PL-24 an exact rule covers the same tool and the same subject, and nothing else', () => {
  const subject = fc.string({ unit: 'grapheme', minLength: 1 })
  fc.assert(
    fc.property(subject, subject, (one, other) => {
      const rule = { tool: 'Bash', scope: 'exact', pattern: one } as const
      assert.ok(coversUse(rule, bash(one)))
      assert.equal(coversUse(rule, bash(other)), one === other)
      assert.ok(!coversUse(rule, { tool: 'Write', subject: one }))
    }),
  )
})

test('PL-24 a prefix rule covers further plain words, and no option, path outside or shell syntax', () => {
  const covered = ['npm test', 'npm test unit', 'npm test src/a.test.ts ./b.ts .', 'npm test a-b_c,d']
  for (const subject of covered) assert.ok(coversUse(npmTest, bash(subject)), subject)
  const asked = [
    ...[
      'npm',
      'npm tests',
      'npm testx',
      'npm  test',
      ' npm test',
      'npm test ',
      'xnpm test',
      'NPM test',
      'npm run test',
    ],
    ...['npm test && rm -rf /', 'npm test; id', 'npm test | sh', 'npm test & id', 'npm test || id', 'npm test\nid'],
    ...['npm test $(id)', 'npm test `id`', 'npm test $HOME', 'npm test ${IFS}id', 'npm test "a b"', "npm test 'a'"],
    ...[
      'npm test > out',
      'npm test < in',
      'npm test 2>&1',
      'npm test >> ~/.bashrc',
      'npm test <(id)',
      'npm test\\\nid',
    ],
    ...['npm test ../x', 'npm test a/../../x', 'npm test ..', 'npm test /etc/passwd', 'npm test ~/x', 'npm test ./..'],
    ...['npm test --prefix x', 'npm test -x', 'npm test --', 'npm test A=b', 'npm test @file', 'npm test http://x.y'],
    ...['npm test *', 'npm test a?', 'npm test [a]', 'npm test {a,b}', 'npm test !x', 'npm test #x', 'npm test a\tb'],
    ...[
      'npm test a\rb',
      'npm test a\u00a0b',
      'npm test a\u2028id',
      'npm test \u0000',
      'npm test %PATH%',
      'npm test a:b',
    ],
    ...['A=b npm test', 'npm test (id)', 'npm\ttest', 'npm test ^x'],
  ]
  for (const subject of asked) assert.ok(!coversUse(npmTest, bash(subject)), JSON.stringify(subject))
  assert.ok(!coversUse(npmTest, { tool: 'web_search', subject: 'npm test unit' }))
})

test('PL-24 a command that a prefix rule covers is read by a shell as exactly its words', () => {
  const pieces = fc.constantFrom(
    ...[
      'npm test',
      ' ',
      'a',
      'src/b.ts',
      '..',
      '/',
      '&&',
      ';',
      '|',
      '$',
      '(',
      ')',
      '`',
      '"',
      "'",
      '\n',
      '\\',
      '>',
      '*',
    ],
    ...['~', '{', '}', ',', '=', '-', '#', '!', '\t', '@', ':', '.', '?', '[', ']', '%', '^', '&', '<', '\u00e4'],
  )
  const subjects = fc.array(pieces, { maxLength: 8 }).map((rest) => `npm test${rest.join('')}`)
  const covered: string[] = []
  fc.assert(
    fc.property(subjects, (subject) => {
      if (!coversUse(npmTest, bash(subject))) return
      covered.push(subject)
      for (const word of subject.split(' ').slice(2)) {
        assert.match(word, /^[\w.,/-]+$/)
        assert.ok(!word.startsWith('-') && !word.startsWith('/') && normalize(word).split('/')[0] !== '..', word)
      }
    }),
    { numRuns: 20_000 },
  )
  assert.ok(covered.length > 100, String(covered.length))
  // The shell itself is the judge: it gets the command with `npm` as a function that prints its arguments.
  const lines = [...new Set(covered)].slice(0, 500)
  const script = ['npm() { printf "%s\\n" "$#:$*"; }', ...lines].join('\n')
  const printed = execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8' }).trimEnd().split('\n')
  const expected = lines.map((line) => line.split(' ').slice(1)).map((words) => `${words.length}:${words.join(' ')}`)
  assert.deepEqual(printed, expected)
})

test('PL-24 a folder rule covers files below it, and no other folder, hidden file or unclear path', () => {
  const rule = { tool: 'Edit', scope: 'folder', pattern: '/shop/migrations/' } as const
  for (const path of ['/shop/migrations/1.sql', '/shop/migrations/old/2.sql'])
    assert.ok(coversUse(rule, edit(path)), path)
  const asked = [
    ...['/shop/migrations', '/shop/migrations/', '/shop/migrations2/1.sql', '/shop/x.sql', 'migrations/1.sql'],
    ...['/shop/migrations/../x', '/shop/migrations/./x', '/shop/migrations//x', '/shop/migrations/a/../../x'],
    ...[
      '/shop/migrations/.git/hooks/x',
      '/shop/migrations/.env',
      '/shop/migrations/a\u0000b',
      '/shop/migrations/a\\..\\b',
    ],
  ]
  for (const path of asked) assert.ok(!coversUse(rule, edit(path)), JSON.stringify(path))
  assert.ok(!coversUse(rule, { tool: 'Write', subject: edit('/shop/migrations/1.sql').subject }))
  assert.ok(!coversUse(rule, { tool: 'Edit', subject: '/shop/migrations/1.sql' }))
  const segment = fc.constantFrom('..', '.', '', 'a', 'b.sql', '.x', 'shop', 'migrations', '\\', '~')
  fc.assert(
    fc.property(fc.array(segment, { maxLength: 6 }), (segments) => {
      const path = `/shop/migrations/${segments.join('/')}`
      if (coversUse(rule, edit(path)))
        assert.ok(normalize(path).startsWith('/shop/migrations/') && path === normalize(path))
    }),
    { numRuns: 2000 },
  )
})

test('PL-24 a folder rule for codex compares every file of a patch, also where a file moves', () => {
  const patch = (...changes: object[]) => ({ tool: 'apply_patch', subject: JSON.stringify(changes) })
  const change = (path: string, kind: object = { type: 'update' }) => ({ path, kind, diff: '+x' })
  const rule = { tool: 'apply_patch', scope: 'folder', pattern: '/shop/src/' } as const
  assert.ok(coversUse(rule, patch(change('/shop/src/a.ts'), change('/shop/src/b/c.ts'))))
  assert.ok(coversUse(rule, patch(change('/shop/src/a.ts', { type: 'update', move_path: null }))))
  const asked = [
    patch(),
    patch(change('/shop/src/a.ts'), change('/shop/x.ts')),
    patch(change('/shop/src/a.ts', { type: 'update', move_path: '/shop/x.ts' })),
    patch({ ...change('/shop/src/a.ts'), also: '/shop/x.ts' }),
    patch(change('/shop/src/a.ts', { type: 'update', target: '/shop/x.ts' })),
    patch({ path: '/shop/src/a.ts' }),
  ]
  for (const use of asked) assert.ok(!coversUse(rule, use), use.subject)
})

test('PL-24 an ask shows the rules that can be made of it, each covers the ask, and a sentence says what', () => {
  const patternsOf = (use: { tool: string; subject: string }) => {
    const { exact, wider } = ruleChoices(use)
    for (const choice of [exact, wider]) if (choice !== undefined) assert.ok(coversUse(choice, use))
    return [exact?.pattern, wider?.pattern]
  }
  assert.deepEqual(patternsOf(bash('npm test')), ['npm test', 'npm test *'])
  assert.deepEqual(patternsOf(bash('npm run release')), ['npm run release', 'npm run release *'])
  assert.deepEqual(patternsOf(bash('git add src/a.ts b.ts')), ['git add src/a.ts b.ts', 'git add *'])
  assert.deepEqual(patternsOf(bash('rm -rf build && npm test')), ['rm -rf build && npm test', undefined])
  assert.deepEqual(patternsOf(bash('sudo')), ['sudo', undefined])
  assert.deepEqual(patternsOf(edit('/shop/src/a.ts')), [edit('/shop/src/a.ts').subject, '/shop/src/'])
  assert.deepEqual(patternsOf(edit('/etc/passwd')), [edit('/etc/passwd').subject, undefined])
  assert.deepEqual(patternsOf(edit('a.ts')), [edit('a.ts').subject, undefined])
  assert.deepEqual(patternsOf({ tool: 'mcp__x__y', subject: '{"a":1}' }), ['{"a":1}', undefined])
  // The agent does not say what it would do, or a person would not read it.
  for (const subject of ['(the agent does not say with which input)', '', 'x'.repeat(4097)]) {
    assert.deepEqual(patternsOf({ tool: 'Bash', subject }), [undefined, undefined])
  }
  assert.match(ruleChoices(bash('npm test')).exact?.sentence ?? '', /^Covers exactly this command\. Every other/)
  assert.match(ruleChoices(bash('npm test')).wider?.sentence ?? '', /^Covers "npm test", alone or .* Still asked: /)
  assert.match(ruleChoices(edit('/a/b/c')).wider?.sentence ?? '', /files below \/a\/b\/\. Still asked: /)
})

test('PL-24 a person may choose a shorter prefix of the command, and no pattern that covers too much', () => {
  assert.equal(choiceOf(bash('npm run release'), 'npm run *')?.scope, 'prefix')
  assert.equal(choiceOf(bash('pytest tests/a.py'), 'pytest *')?.scope, 'prefix')
  assert.equal(choiceOf(edit('/shop/src/a/b.ts'), '/shop/src/')?.scope, 'folder')
  const refused = ['*', ' *', 'npm', 'npm run', 'npm run *x', 'yarn run *', 'npm ru*', 'npm run  *', '/', 'sudo *']
  for (const pattern of refused) assert.equal(choiceOf(bash('npm run release'), pattern), undefined, pattern)
  for (const command of ['sudo ls', '/usr/bin/env ls', 'python x.py']) {
    assert.equal(choiceOf(bash(command), `${command.split(' ')[0]} *`), undefined, command)
  }
  for (const pattern of ['/', '/shop/', '/shop/src', '/shop/other/', '/shop/src/../']) {
    assert.equal(choiceOf(edit('/shop/src/a.ts'), pattern), undefined, pattern)
  }
})

test('PL-24 each tool of each agent is known: a shell suggests its command, and a tool for files suggests their folder', () => {
  const widerOf = (tool: string, subject: string) => ruleChoices({ tool, subject }).wider?.pattern
  for (const tool of ['Bash', 'bash', 'shell', 'execute', 'run_shell_command', 'terminal']) {
    assert.equal(widerOf(tool, 'npm test'), 'npm test *', tool)
    assert.match(ruleChoices({ tool, subject: 'make' }).exact?.sentence ?? '', /^Covers exactly this command\./)
  }
  const fields = {
    file_path: ['Read', 'Edit', 'MultiEdit', 'Write', 'write_file', 'replace'],
    notebook_path: ['NotebookEdit'],
    filePath: ['read', 'edit', 'write'],
  }
  for (const [field, tools] of Object.entries(fields)) {
    for (const tool of tools) {
      assert.equal(widerOf(tool, JSON.stringify({ [field]: '/shop/src/a.ts' })), '/shop/src/', tool)
      assert.equal(widerOf(tool, JSON.stringify({ path: '/shop/src/a.ts' })), undefined, tool)
    }
  }
})

test('PL-24 a command that runs its further words can be allowed exactly as it is, and by no prefix', () => {
  const launching = [
    ...['timeout 60 ls', 'sudo -u root ls', 'env -i ls', 'nice -n 5 ls', 'nohup ls', 'time ls', 'doas ls', 'su root'],
    ...[
      'xargs rm',
      'sh -c ls',
      'bash -c ls',
      '/bin/bash x.sh',
      'stdbuf -o0 ls',
      'setsid ls',
      'ssh host ls',
      'watch ls',
    ],
    ...['docker run alpine ls', 'docker compose exec db ls', 'podman exec a ls', 'kubectl exec a ls', 'npx vitest'],
    ...['npm exec vitest', 'npm x vitest', 'npm --prefix a test', 'pnpm dlx a', 'yarn dlx a', 'bun x a', 'uvx ruff'],
    ...['git -c core.pager=less log', 'git bisect run make', 'git submodule foreach make', 'find . -exec rm a'],
    ...[
      'python -c x',
      'python3.12 -i',
      'node -e x',
      'perl -e x',
      'deno eval x',
      'uv run x',
      'bundle exec rake',
      'SUDO ls',
    ],
  ]
  for (const command of launching) {
    const { exact, wider } = ruleChoices(bash(command))
    assert.equal(exact?.pattern, command)
    assert.equal(wider, undefined, command)
    for (let words = command.split(' '); words.length > 0; words = words.slice(0, -1)) {
      assert.equal(choiceOf(bash(command), `${words.join(' ')} *`), undefined, words.join(' '))
    }
  }
  // A rule of an earlier version that is too wide covers nothing any more.
  const old = { tool: 'Bash', scope: 'prefix', pattern: 'timeout 60 *' } as const
  assert.ok(!coversUse(old, bash('timeout 60 rm')))
  for (const [command, pattern] of [
    ['python tests/a.py', 'python tests/a.py *'],
    ['python3 -m pytest', 'python3 -m pytest *'],
    ['find . -name a', 'find . -name a *'],
    ['git log', 'git log *'],
    ['docker ps', 'docker ps *'],
  ] as const) {
    assert.equal(ruleChoices(bash(command)).wider?.pattern, pattern)
  }
})

test('PL-24 a patch suggests the folder of all of its files, and none where they have none in common', () => {
  const suggested = (...paths: string[]) => {
    const changes = paths.map((path) => ({ path, kind: { type: 'update' }, diff: '+x' }))
    return ruleChoices({ tool: 'apply_patch', subject: JSON.stringify(changes) }).wider?.pattern
  }
  assert.equal(suggested('/shop/src/a/b/x.ts', '/shop/src/a/y.ts', '/shop/src/a/c/d/z.ts'), '/shop/src/a/')
  assert.equal(suggested('/shop/src/a/y.ts', '/shop/src/a/b/x.ts'), '/shop/src/a/')
  assert.equal(suggested('src/a.ts', 'src/b/c.ts'), 'src/')
  assert.equal(suggested('/shop/src/x.ts', '/shop/web/y.ts'), undefined)
  assert.equal(suggested('/shop/src/x.ts', '/shop/lib/a/y.ts'), undefined)
  assert.equal(suggested('/shop/src/.x.ts', '/shop/src/y.ts'), undefined, 'a hidden file')
  assert.equal(suggested('/x.ts', '/y.ts'), undefined)
  const moves = (from: string, to: string) => {
    const kind = { type: 'update', move_path: to }
    return ruleChoices({ tool: 'apply_patch', subject: JSON.stringify([{ path: from, kind, diff: '' }]) }).wider
      ?.pattern
  }
  assert.equal(moves('/shop/src/a/x.ts', '/shop/src/y.ts'), '/shop/src/')
  assert.equal(moves('/shop/web/x.ts', '/shop/src/y.ts'), undefined)
})

test('PL-24 a suggestion keeps the words of the command, and a pattern of 4096 characters is still shown', () => {
  const widerOf = (subject: string) => ruleChoices(bash(subject)).wider?.pattern
  assert.equal(widerOf('git src/a.ts'), 'git src/a.ts *', 'the second word stays')
  assert.equal(widerOf('cp a.ts b.ts c'), 'cp a.ts b.ts c *', 'a last word without a dot or a slash stays')
  assert.equal(widerOf('cp -r a.ts --x/y'), 'cp -r a.ts --x/y *', 'an option stays')
  assert.equal(widerOf('git add -- a/b'), 'git add -- *')
  assert.equal(widerOf('git add a/b c/d e.f'), 'git add *')
  assert.equal(widerOf('A=b npm test'), undefined)
  const longest = 'x'.repeat(4096)
  assert.equal(ruleChoices(bash(longest)).exact?.pattern, longest)
  assert.deepEqual(ruleChoices(bash('(unclear)')), {})
  assert.equal(ruleChoices(bash('(a) b')).exact?.pattern, '(a) b')
})

test('PL-24 the sentence of a rule says what it covers, word for word', () => {
  assert.deepEqual(ruleChoices(bash('npm test')), {
    exact: {
      tool: 'Bash',
      scope: 'exact',
      pattern: 'npm test',
      sentence: 'Covers exactly this command. Every other command is still asked, also this one with other arguments.',
    },
    wider: {
      tool: 'Bash',
      scope: 'prefix',
      pattern: 'npm test *',
      sentence:
        'Covers "npm test", alone or followed by plain words. Still asked: further options, absolute paths and "..", quotes, variables, and commands joined by ;, &, |, < or >.',
    },
  })
  const { subject } = edit('/shop/src/a.ts')
  assert.deepEqual(ruleChoices({ tool: 'Edit', subject }), {
    exact: {
      tool: 'Edit',
      scope: 'exact',
      pattern: subject,
      sentence: 'Covers exactly this use of Edit. Every other use is still asked.',
    },
    wider: {
      tool: 'Edit',
      scope: 'folder',
      pattern: '/shop/src/',
      sentence:
        'Covers each use of Edit for files below /shop/src/. Still asked: files elsewhere, and hidden files and folders below it.',
    },
  })
})

test('PL-24 a pattern is compared as it is: a relative folder, a file of another folder, a pattern without a file', () => {
  assert.equal(choiceOf(edit('src/a.ts'), 'src/')?.scope, 'folder')
  assert.equal(choiceOf(edit('/shop/src/a.ts'), 'shop/src/'), undefined)
  assert.equal(choiceOf(edit('shop/src/a.ts'), '/shop/src/'), undefined)
  for (const pattern of ['//', './', '../', 'src//', 'src/./', '', '/']) {
    assert.equal(choiceOf(edit('src/a.ts'), pattern), undefined, pattern)
  }
  for (const pattern of ['/shop/./src/', '/shop/../src/', './src/', '../src/', '/shop//src/']) {
    assert.equal(choiceOf(edit(`${pattern}a.ts`), pattern), undefined, pattern)
  }
  const folder = { tool: 'Edit', scope: 'folder', pattern: '/shop/src/' } as const
  assert.ok(!coversUse(folder, { tool: 'Edit', subject: '{"file_path":7}' }))
  assert.ok(!coversUse(folder, { tool: 'Edit', subject: '["/shop/src/a.ts"]' }))
  assert.ok(!coversUse({ ...folder, tool: 'Bash' }, bash('/shop/src/a.ts')))
  assert.ok(!coversUse({ ...npmTest, pattern: 'npm test' }, bash('npm test')), 'a prefix has a wildcard')
})
