import manifest from '../../package.json' with { type: 'json' }

/** The version of Alcove that this process runs. */
export const version: string = manifest.version
