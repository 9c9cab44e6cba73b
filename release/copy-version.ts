/** Gives all packages the version of the root; `npm version` runs it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { manifestOf, ROOT, versionProblems } from './packages.ts'

const { version } = manifestOf('.')

function edit(file: string, change: (text: string) => string): void {
  const path = join(ROOT, file)
  writeFileSync(path, change(readFileSync(path, 'utf8')))
}

for (const folder of ['src/buyer', 'src/service', 'create-ratecard'])
  edit(`${folder}/package.json`, (text) =>
    text
      .replace(/"version": ".*?"/, `"version": "${version}"`)
      .replace(/"ratecard": "\d.*?"/, `"ratecard": "${version}"`),
  )
edit('package-lock.json', (text) =>
  text.replaceAll(/("src\/(?:buyer|service)": \{\s*"name": ".*?",\s*"version": )".*?"/g, `$1"${version}"`),
)
const problems = versionProblems()
if (problems.length > 0) throw new Error(problems.join('\n'))
