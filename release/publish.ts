import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { manifestOf, ROOT, type Packed } from './packages.ts'
import { attempt, run } from './shell.ts'

/** Why nothing can be published from here, one line each. */
export function publishProblems(env: NodeJS.ProcessEnv): string[] {
  const tag = `v${manifestOf('.').version}`
  const isTagged = run('git tag --points-at HEAD', ROOT).split('\n').includes(tag)
  return [
    ...(run('git status --porcelain', ROOT) === '' ? [] : ['there are changes that are not committed']),
    ...(isTagged ? [] : [`HEAD does not have the tag ${tag}`]),
    ...(hasChangelog() ? [] : [`CHANGELOG.md has no entry "## ${manifestOf('.').version}"`]),
    // npm signs from which commit and by which workflow a package was built: a machine of a person cannot prove it.
    ...(env['ACTIONS_ID_TOKEN_REQUEST_URL'] === undefined
      ? ['only .github/workflows/release.yml publishes, with provenance']
      : []),
  ]
}

function hasChangelog(): boolean {
  const { version } = manifestOf('.')
  return readFileSync(join(ROOT, 'CHANGELOG.md'), 'utf8')
    .split('\n')
    .some((line) => line === `## ${version}` || line.startsWith(`## ${version} `))
}

/** Publishes the tarballs that were checked. A run that was interrupted can be repeated. */
export function publish(packages: readonly Packed[]): void {
  for (const { manifest, tarball } of packages) {
    const place = `${manifest.name}@${manifest.version}`
    const isPublished = attempt(`npm view ${place} version`, ROOT).stdout.trim() === manifest.version
    if (!isPublished) run(`npm publish ${tarball} --access public --provenance --ignore-scripts`, ROOT)
    console.log(`${place}: ${isPublished ? 'was published before' : 'published'}`)
  }
}
