import { readFileSync } from 'node:fs'
import t from 'tap'
import { settingFiles } from '../../docs/settings.ts'
import { readEnv } from '../../src/env.ts'
import { SETTINGS, settingsInOrder } from '../../src/settings.ts'

const ROOT = new URL('../../', import.meta.url)

t.test('files that are made from the settings are as `npm run generate` writes them', async (t) => {
  const files = await settingFiles()
  t.ok(files.size >= 5)
  for (const [path, text] of files) t.equal(readFileSync(new URL(path, ROOT), 'utf8'), text, path)
})

t.test('each variable has a setting, and each setting a variable or an option', async (t) => {
  const asked = new Set<string>()
  readEnv(
    new Proxy<Record<string, string>>(
      {},
      {
        get: (_, name) => {
          asked.add(String(name))
        },
        ownKeys: () => [],
      },
    ),
  )
  const listed = settingsInOrder().flatMap(([, { variable }]) => (variable === undefined ? [] : [variable]))
  t.strictSame(Array.from(asked).sort(), listed.filter((name) => name !== SETTINGS.rpcUrls.variable).sort())
  for (const [name, { variable, option }] of settingsInOrder())
    t.ok(variable !== undefined || option !== undefined, name)
})
