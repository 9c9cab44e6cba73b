import t from 'tap'
import { join } from 'node:path'
import { importHandlers } from '../../../src/cli/load-handlers.ts'

t.test('loads exactly the exports that are handlers', async (t) => {
  const folder = (text: string): string =>
    t.testdir({ 'package.json': '{"type":"module"}', 'index.js': text })
  const good = folder(
    'export const handlers = { a: async () => {}, b: { run() {}, preview() {} }, c: { run() {}, configured: false }, d: { run() {}, check() {} }, e: { run() {}, preview() {}, check() {}, configured: true } }',
  )
  t.strictSame(Object.keys(await importHandlers(good)), ['a', 'b', 'c', 'd', 'e'])
})

for (const [name, text, words] of [
  ['nothing', 'export const x = 1', /exports no "handlers"/],
  ['a number', 'export const handlers = { a: 1 }', /exports no "handlers"/],
  ['half a pair', 'export const handlers = { a: { run() {} } }', /exports no "handlers"/],
  [
    'a check that is no function',
    'export const handlers = { a: { run() {}, check: true } }',
    /exports no "handlers"/,
  ],
  ['null', 'export const handlers = null', /exports no "handlers"/],
  ['half a file', 'export const handlers = {', /cannot be loaded: SyntaxError/],
  ['a failing file', 'throw new Error("no database")', /cannot be loaded: Error: no database/],
] as const) {
  t.test(`reports ${name} instead of handlers with the file`, async (t) => {
    const directory = t.testdir({ 'package.json': '{"type":"module"}', 'index.js': text })
    await t.rejects(importHandlers(directory), { message: words })
    await t.rejects(importHandlers(directory), { message: /index\.js/ })
  })
}

for (const [name, moon, place] of [
  ['cannot be parsed', 'export const moon = 1\nexport const sun = 1 +* 2\n', /sub\/moon\.js:2$/],
  ['ends too early', 'export const moon = (\n', /sub\/moon\.js:\d$/],
  ['exports another name', 'export const mars = 1\n', /index\.js:1$/],
  ['fails', '\n\nexport const moon = JSON.parse("{")\n', /sub\/moon\.js:3$/],
] as const)
  t.test(`names file and line when a module of the handlers ${name}`, async (t) => {
    const directory = t.testdir({
      'package.json': '{"type":"module"}',
      'index.js': 'import { moon } from "./sub/moon.js"\nexport const handlers = { moon }\n',
      sub: { 'moon.js': moon },
      'other.js': 'export const other = 1\n',
    })
    await t.rejects(importHandlers(directory), { message: place })
  })

t.test('reports a folder without handlers with its path', async (t) => {
  await t.rejects(importHandlers(join(t.testdir(), 'absent')), {
    message: /no such file: .*absent.*; --handlers names/,
  })
})

t.test('stops loading handlers after thirty seconds, and names the file', async (t) => {
  const directory = t.testdir({
    'package.json': '{"type":"module"}',
    'index.js': 'await new Promise(() => {})\nexport const handlers = {}\n',
  })
  await t.rejects(importHandlers(directory, 500), {
    message: /index\.js cannot be loaded: Error: not loaded after 0\.5 s: a top-level/,
  })
})
