import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Session } from '../test/packed/support/terminal-session.ts'
import { manifestOf, ROOT } from './packages.ts'
import { attempt } from './shell.ts'

/** Major version of pnpm that is fetched. */
const PNPM = 10

export const MANAGERS = ['npm', 'pnpm'] as const
type Manager = (typeof MANAGERS)[number]

/** Tarballs by the name of their package. */
export type Tarballs = ReadonlyMap<string, string>

export interface Tools {
  readonly node: string
  /** Folders to put before PATH. */
  readonly path: string
}

/** Node.js of this major version with npm and pnpm; undefined when it is neither here nor in the registry. */
export function findTools(major: number): Tools | undefined {
  const here = Number(process.versions.node.split('.')[0]) === major
  const node = here ? process.execPath : fetched(`node@${major}`, 'node')
  const pnpm = fetched(`pnpm@${PNPM}`, 'pnpm')
  if (node === undefined || pnpm === undefined) return undefined
  const path = [node, pnpm].map((file) => join(file, '..')).join(':')
  const { code, stdout } = attempt(`PATH=${path}:$PATH; node --version; pnpm --version`, ROOT)
  return code === 0 ? { node: stdout.split('\n')[0] ?? '', path } : undefined
}

/** The path of a program of a package. */
function fetched(name: string, program: string): string | undefined {
  const { code, stdout } = attempt(`npx --yes --package=${name} --call 'command -v ${program}'`, ROOT)
  return code === 0 ? stdout.trim() : undefined
}

interface Words {
  readonly add: (tarballs: readonly string[]) => string
  readonly exec: string
  readonly run: string
}

const WORDS: Readonly<Record<Manager, Words>> = {
  npm: {
    add: (tarballs) => `npm install --prefer-offline --no-audit --no-fund ${tarballs.join(' ')}`,
    exec: 'npx --no-install',
    run: 'npm run',
  },
  pnpm: {
    add: (tarballs) => `pnpm add --prefer-offline ${tarballs.join(' ')}`,
    exec: 'pnpm exec',
    run: 'pnpm run',
  },
}

/**
 * Installs each tarball in an empty folder and runs there what the first hour of the guide runs. Rejects when a command
 * fails.
 */
export async function firstHour(
  folder: string,
  { node, path }: Tools,
  manager: Manager,
  tarballs: Tarballs,
): Promise<void> {
  const { add, exec, run } = WORDS[manager]
  const tarball = (name: string): string => {
    const found = tarballs.get(name)
    if (found === undefined) throw new Error(`${name} was not packed`)
    return found
  }
  const emptyProject = (name: string): string => {
    const place = join(folder, name)
    mkdirSync(place, { recursive: true })
    writeFileSync(join(place, 'package.json'), '{ "private": true }\n')
    return place
  }
  const [shop, buyer, created] = [emptyProject('shop'), emptyProject('buyer'), emptyProject('created')]
  // The version that it needs is not in the registry yet.
  const overrides = { ratecard: `file:${tarball('ratecard')}` }
  writeFileSync(join(created, 'pnpm-workspace.yaml'), JSON.stringify({ overrides }))

  const session = new Session(shop, /(?!)/)
  const type = async (command: string, expected = /(?:)/): Promise<void> => {
    const { code, output } = await session.run({ text: command })
    if (code !== 0 || !expected.test(output)) throw new Error(`${command} ended with ${code}:\n${output}`)
  }
  try {
    await type(`export PATH=${path}:$PATH`)
    await type('node --version', new RegExp(`^${node}$`, 'm'))
    await type(add([tarball('ratecard')]))
    await type(`${exec} ratecard --version`, new RegExp(`^ratecard ${manifestOf('.').version}$`, 'm'))
    await type(`${exec} ratecard init`)
    await type(`${exec} ratecard check`, /2 routes, 1 paid/)
    await type(`${run} test`, /pass 1/)
    await type(`${run} sandbox`)
    await type(`${exec} ratecard pay /paid/moon/2026-12-24`, /200, charged: yes[^]*full moon/)
    await type(`cd ${buyer}`)
    await type(add([tarball('ratecard-buyer')]))
    await type(
      `DATA_DIR=${shop}/.ratecard ${exec} ratecard-buyer pay /paid/moon/2026-12-25 --max 0.01`,
      /200, charged: yes/,
    )
    await type(`cd ${created}`)
    await type(add([tarball('ratecard'), tarball('create-ratecard')]))
    await type(`${exec} create-ratecard moon`)
    await type(`cd moon && ${exec} ratecard check`, /2 routes, 1 paid/)
  } finally {
    await session.close()
  }
}
