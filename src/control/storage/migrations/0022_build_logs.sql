-- What was said while an image was made, in pieces as they came. Not tied to the image: who wants to know why it failed reads
-- it when nobody needs the image any more.
create table build_logs (
  id bigint generated always as identity primary key,
  image text not null,
  at timestamptz(3) not null,
  text text not null
);
create index build_logs_of_image on build_logs (image, id);
create index build_logs_by_time on build_logs (at);
