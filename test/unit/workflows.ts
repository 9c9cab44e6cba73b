import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { ROOT, textOf } from '../support/markdown.ts'

interface Job {
  readonly permissions?: Readonly<Record<string, string>>
  readonly steps: readonly { readonly run?: string }[]
}

interface Workflow {
  readonly permissions: Readonly<Record<string, string>>
  readonly jobs: Readonly<Record<string, Job>>
}

const files = readdirSync(join(ROOT, '.github/workflows')).map((name) => `.github/workflows/${name}`)

for (const file of files) {
  const { permissions, jobs } = parse(textOf(file)) as Workflow

  t.test(`${file} uses actions by their commit, with the release in a comment`, async (t) => {
    const uses = textOf(file).match(/uses: .*/g) ?? []
    t.ok(uses.length > 0)
    for (const line of uses) t.match(line, /^uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/)
  })

  t.test(`${file} may read, and only its publishing job may sign`, async (t) => {
    t.same(permissions, { contents: 'read' })
    for (const [name, job] of Object.entries(jobs))
      t.same(
        job.permissions,
        name === 'publish' ? { contents: 'read', 'id-token': 'write' } : undefined,
        name,
      )
  })

  t.test(`${file} runs scripts that exist`, async (t) => {
    const { scripts } = JSON.parse(textOf('package.json')) as { readonly scripts: object }
    const names = Array.from(textOf(file).matchAll(/npm run (\w+)/g), ([, name = '']) => name)
    for (const name of names) t.ok(name in scripts, name)
  })
}
