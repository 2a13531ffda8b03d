// Turns the form of a new snapshot into the body of `POST /snapshots`.

export type SnapshotForm = {
  name: string
  source: 'image' | 'dockerfile'
  image: string
  dockerfile: string
  /** The entrypoint, with one argument in each line. */
  entrypoint: string
  cpu: string
  memory: string
  disk: string
  region: string
}

export const emptyForm: SnapshotForm = {
  name: '',
  source: 'image',
  image: '',
  dockerfile: 'FROM debian:12-slim\nRUN apt-get update && apt-get install --yes python3\n',
  entrypoint: '',
  cpu: '',
  memory: '',
  disk: '',
  region: '',
}

/** The body of `POST /snapshots`. Empty fields are left out, so that the server uses its defaults. */
export const bodyOf = (form: SnapshotForm): Record<string, unknown> => {
  const entrypoint = form.entrypoint.split('\n').filter((argument) => argument !== '')
  const amounts = Object.fromEntries(
    (['cpu', 'memory', 'disk'] as const).flatMap((name) =>
      form[name].trim() === '' ? [] : [[name, Number(form[name])]],
    ),
  )
  return {
    name: form.name.trim(),
    ...(form.source === 'image'
      ? { imageName: form.image.trim() }
      : { buildInfo: { dockerfileContent: form.dockerfile } }),
    ...(entrypoint.length > 0 && { entrypoint }),
    ...amounts,
    ...(form.region !== '' && { regionId: form.region }),
  }
}

/** Whether the required fields are filled. The server checks everything else. */
export const isComplete = ({ name, source, image, dockerfile }: SnapshotForm): boolean =>
  name.trim() !== '' && (source === 'image' ? image : dockerfile).trim() !== ''
