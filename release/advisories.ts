/**
 * Fails for a high or critical advisory in code that the packages contain: `npm audit` of a user does not see it, and only a
 * release corrects it. Advisories in dependencies reach users by themselves.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Component } from './package-checks.ts'
import { ROOT } from './packages.ts'
import { attempt } from './shell.ts'

const SBOMS = ['dist/vendor/sbom.json', 'src/buyer/dist/sbom.json']

interface Vulnerability {
  readonly name: string
  /** Advisories; a text is the name of a dependency that has some. */
  readonly via: readonly (
    | string
    | { readonly severity: string; readonly title: string; readonly url: string; readonly range: string }
  )[]
  /** Places in the lock file. */
  readonly nodes: readonly string[]
}

interface Report {
  readonly vulnerabilities: Readonly<Record<string, Vulnerability>>
}

/** `reason`: why the registry has given none. */
function audit(): Report | { readonly reason: string } {
  const { stdout, output } = attempt('npm audit --json', ROOT)
  const { vulnerabilities, message } = JSON.parse(stdout || '{}') as Partial<Report> & { message?: string }
  return vulnerabilities === undefined ? { reason: message ?? output } : { vulnerabilities }
}

function bundled(): Set<string> {
  const components = SBOMS.flatMap(
    (path) =>
      (JSON.parse(readFileSync(join(ROOT, path), 'utf8')) as { readonly components: readonly Component[] })
        .components,
  )
  return new Set(components.map(({ name, version }) => `${name}@${version}`))
}

/** Advisories that concern what is bundled, one line each. */
function findingsIn({ vulnerabilities }: Report): string[] {
  const inside = bundled()
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, { readonly version: string }>>
  }
  return Object.values(vulnerabilities).flatMap(({ name, via, nodes }) => {
    const found = new Set(nodes.map((node) => `${name}@${packages[node]?.version}`))
    const places = [...found].filter((place) => inside.has(place))
    if (places.length === 0) return []
    return via
      .filter((each) => typeof each !== 'string')
      .filter(({ severity }) => severity === 'high' || severity === 'critical')
      .map(
        ({ severity, title, url, range }) => `${places.join(', ')}: ${severity}: ${title} (${range}), ${url}`,
      )
  })
}

const report = audit()
if ('reason' in report)
  console.log(`bundled code was not checked: no advisories from the registry: ${report.reason}`)
else {
  const findings = findingsIn(report)
  for (const finding of findings) console.log(finding)
  console.log(`${findings.length} high or critical advisories in ${bundled().size} bundled packages`)
  process.exitCode = findings.length === 0 ? 0 : 1
}
